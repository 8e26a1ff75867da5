"""The client of the APISIX Admin API: requests, responses, retries and errors."""
