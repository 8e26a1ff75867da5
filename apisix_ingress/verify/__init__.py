"""Sends the same requests to two gateways and reports differences between their responses.

`ingresses`, `accesslog` and `requestfile` generate the requests, `client` sends them, `compare` compares two responses,
`session` decides what is sent how often, `report` writes the result. Nothing here depends on APISIX.
"""
