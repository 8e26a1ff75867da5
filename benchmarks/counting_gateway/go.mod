module countinggateway

go 1.24
