// Command suite is the official conformance suite of the Gateway API as a program.
package main

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
	_ "sigs.k8s.io/gateway-api/pkg/features"
)

func main() {
	every := func(string, string) (bool, error) { return true, nil }
	tests := []testing.InternalTest{{Name: "TestConformance", F: conformance.RunConformance}}
	testing.Main(every, tests, nil, nil)
}
