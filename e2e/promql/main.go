// promql reads a file of alert rules and Grafana dashboards with Prometheus' own parser and prints what is wrong.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// rules counts the rules of a file that are right and says what is wrong with the others, templates included.
func rules(file string) (int, []error) {
	groups, errors := rulefmt.ParseFile(file, false)
	count := 0
	if groups != nil {
		for _, group := range groups.Groups {
			count += len(group.Rules)
		}
	}
	return count, errors
}

// expressions does the same for the panels of a dashboard.
func expressions(file string) (int, []error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, []error{err}
	}
	var found dashboard
	if err := json.Unmarshal(text, &found); err != nil {
		return 0, []error{err}
	}
	count, errors := 0, []error{}
	for _, panel := range found.Panels {
		for _, target := range panel.Targets {
			count++
			if _, err := parser.ParseExpr(target.Expr); err != nil {
				errors = append(errors, fmt.Errorf("%s: %w", panel.Title, err))
			}
		}
	}
	return count, errors
}

func main() {
	wrong := false
	for number, file := range os.Args[1:] {
		read := expressions
		if number == 0 {
			read = rules
		}
		count, errors := read(file)
		fmt.Println(file, count)
		for _, err := range errors {
			fmt.Fprintln(os.Stderr, err)
			wrong = true
		}
	}
	if wrong {
		os.Exit(1)
	}
}
