"""Sends the same requests to two gateways and reports where their answers differ.

`ingresses`, `accesslog` and `requestfile` make the requests, `client` sends them, `compare` judges two answers,
`session` decides what is sent how often, `report` writes the result. Nothing here knows APISIX.
"""
