// Runs a health check of Argo CD the way Argo CD does: a Lua script with the object as the global `obj`, in gopher-lua.
//
// usage: argocd SCRIPT < OBJECTS, one JSON object per line; prints "status: message" for each.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var object any
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			fail(err)
		}
		fmt.Println(health(string(script), object))
	}
}

func health(script string, object any) string {
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(script); err != nil {
		fail(err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		fail(fmt.Errorf("the script does not return a table"))
	}
	return fmt.Sprintf("%s: %s", result.RawGetString("status"), result.RawGetString("message"))
}

func value(state *lua.LState, from any) lua.LValue {
	switch item := from.(type) {
	case bool:
		return lua.LBool(item)
	case float64:
		return lua.LNumber(item)
	case string:
		return lua.LString(item)
	case []any:
		table := state.NewTable()
		for _, each := range item {
			table.Append(value(state, each))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for name, each := range item {
			table.RawSetString(name, value(state, each))
		}
		return table
	}
	return lua.LNil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
