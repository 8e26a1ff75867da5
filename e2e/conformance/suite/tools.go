//go:build tools

package main

import _ "sigs.k8s.io/gateway-api/conformance/echo-basic"
