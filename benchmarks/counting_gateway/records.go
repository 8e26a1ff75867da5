package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
)

// What a route, a service or an upstream says, as far as it decides which nodes a request may reach.
type target struct {
	Nodes      json.RawMessage `json:"nodes"`
	Upstream   *target         `json:"upstream"`
	UpstreamID id              `json:"upstream_id"`
	ServiceID  id              `json:"service_id"`
	URI        string          `json:"uri"`
	URIs       []string        `json:"uris"`
	Plugins    struct {
		Split struct {
			Rules []struct {
				Weighted []target `json:"weighted_upstreams"`
			} `json:"rules"`
		} `json:"traffic-split"`
	} `json:"plugins"`
}

// An id may be written as a string or as a number.
type id string

func (i *id) UnmarshalJSON(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if value != nil {
		*i = id(fmt.Sprint(value))
	}
	return nil
}

func (t *target) paths() []string {
	if t.URI != "" {
		return append([]string{t.URI}, t.URIs...)
	}
	return t.URIs
}

// Calls visit with each target that t reaches directly, and follow with the key of each record that it names.
func (t *target) each(visit func(*target), follow func(key string)) {
	visit(t)
	if t.UpstreamID != "" {
		follow("upstreams/" + string(t.UpstreamID))
	}
	if t.ServiceID != "" {
		follow("services/" + string(t.ServiceID))
	}
	if t.Upstream != nil {
		t.Upstream.each(visit, follow)
	}
	for _, rule := range t.Plugins.Split.Rules {
		for i := range rule.Weighted {
			rule.Weighted[i].each(visit, follow)
		}
	}
}

type record struct {
	body json.RawMessage
	what target
}

// Holds the records, and which records name which.
type shelf struct {
	kinds map[string]map[string]*record
	users map[string]map[string]bool // key of a record -> keys of those that name it
	paths map[string]map[string]bool // path -> keys of the routes that serve it
}

func newShelf() *shelf {
	return &shelf{map[string]map[string]*record{}, map[string]map[string]bool{}, map[string]map[string]bool{}}
}

func (s *shelf) find(key string) *record {
	kind, name := split(key)
	return s.kinds[kind][name]
}

// Keeps a record; returns whether it is new, whether it changes anything, and the paths that it may have changed.
func (s *shelf) put(key string, body json.RawMessage) (created, changed bool, paths []string, err error) {
	fresh := &record{body: body}
	if err = json.Unmarshal(body, &fresh.what); err != nil {
		return
	}
	old := s.find(key)
	if old != nil && same(old.body, body) {
		return false, false, nil, nil
	}
	if old != nil {
		paths = s.unlink(key, old)
	}
	kind, name := split(key)
	if s.kinds[kind] == nil {
		s.kinds[kind] = map[string]*record{}
	}
	s.kinds[kind][name] = fresh
	fresh.what.each(func(*target) {}, func(named string) { add(s.users, named, key) })
	if kind == "routes" {
		for _, path := range fresh.what.paths() {
			add(s.paths, path, key)
		}
	}
	return old == nil, true, append(paths, s.pathsOf(key)...), nil
}

// Drops a record; returns the paths that this may have changed.
func (s *shelf) drop(key string) []string {
	old := s.find(key)
	paths := s.pathsOf(key)
	s.unlink(key, old)
	kind, name := split(key)
	delete(s.kinds[kind], name)
	return paths
}

func (s *shelf) unlink(key string, old *record) []string {
	old.what.each(func(*target) {}, func(named string) { delete(s.users[named], key) })
	kind, _ := split(key)
	if kind != "routes" {
		return nil
	}
	for _, path := range old.what.paths() {
		delete(s.paths[path], key)
	}
	return old.what.paths()
}

// Returns the paths of a route, or of every route that a record is part of.
func (s *shelf) pathsOf(key string) []string {
	kind, _ := split(key)
	if kind == "routes" {
		return s.find(key).what.paths()
	}
	var paths []string
	for user := range s.users[key] {
		paths = append(paths, s.pathsOf(user)...)
	}
	return paths
}

// Returns the nodes that requests for a path may reach, sorted; nil if no route serves it.
func (s *shelf) nodes(path string) []string {
	if len(s.paths[path]) == 0 {
		return nil
	}
	found := map[string]bool{}
	visit := func(t *target) {
		for _, node := range nodesOf(t.Nodes) {
			found[node] = true
		}
	}
	var follow func(key string)
	follow = func(key string) {
		if named := s.find(key); named != nil {
			named.what.each(visit, follow)
		}
	}
	for key := range s.paths[path] {
		follow(key)
	}
	nodes := make([]string, 0, len(found))
	for node := range found {
		nodes = append(nodes, node)
	}
	sort.Strings(nodes)
	return nodes
}

// Nodes are a list of objects, or an object of weights by "host:port".
func nodesOf(raw json.RawMessage) []string {
	var list []struct {
		Host string `json:"host"`
		Port int    `json:"port"`
	}
	var nodes []string
	if len(raw) == 0 {
		return nil
	}
	if json.Unmarshal(raw, &list) == nil {
		for _, node := range list {
			nodes = append(nodes, fmt.Sprintf("%s:%d", node.Host, node.Port))
		}
		return nodes
	}
	var weights map[string]any
	if json.Unmarshal(raw, &weights) == nil {
		for node := range weights {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func same(a, b json.RawMessage) bool {
	if string(a) == string(b) {
		return true
	}
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

func add(to map[string]map[string]bool, key, value string) {
	if to[key] == nil {
		to[key] = map[string]bool{}
	}
	to[key][value] = true
}
