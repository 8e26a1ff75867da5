"""The fields of rate-limiting plugins that configure state in Redis."""

PLAIN = """
    redis_{port,username,password,database,timeout,ssl,ssl_verify,keepalive_timeout,keepalive_pool}
    redis_cluster_{name,ssl,ssl_verify}"""
SENTINEL_PLAIN = "redis_{connect_timeout,read_timeout,master_name,role} sentinel_{username,password}"

REDIRECTING = "connects to servers that can redirect it to other addresses, which are not checked"
_TRUSTING = "allocates as much memory as a server announces: a response of 12 bytes occupies 1.6 GB"
REFUSED = {"redis_host": _TRUSTING, "redis_cluster_nodes": REDIRECTING}
SENTINEL_REFUSED = REFUSED | {"redis_sentinels[].{host,port}": REDIRECTING}
