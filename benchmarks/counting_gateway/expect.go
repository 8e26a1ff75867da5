package main

import (
	"slices"
	"time"
)

// What somebody waits for: that a path leads to exactly these nodes, or that no route serves it any more.
type expectation struct {
	Key    string   `json:"key"`
	Path   string   `json:"path"`
	Nodes  []string `json:"nodes"`
	Absent bool     `json:"absent"`

	met bool
	at  int64
}

type waiting struct {
	byKey   map[string]*expectation
	byPath  map[string]map[string]*expectation
	pending int
}

func newWaiting() *waiting {
	return &waiting{map[string]*expectation{}, map[string]map[string]*expectation{}, 0}
}

// Takes an expectation, instead of an older one with the same key.
func (w *waiting) expect(e *expectation, s *shelf) {
	if old := w.byKey[e.Key]; old != nil {
		delete(w.byPath[old.Path], old.Key)
		if !old.met {
			w.pending--
		}
	}
	slices.Sort(e.Nodes)
	w.byKey[e.Key] = e
	if w.byPath[e.Path] == nil {
		w.byPath[e.Path] = map[string]*expectation{}
	}
	w.byPath[e.Path][e.Key] = e
	w.pending++
	w.look(e, s.nodes(e.Path), time.Now().UnixNano())
}

// Looks at what is expected of these paths after a change.
func (w *waiting) recheck(paths []string, s *shelf) {
	for _, path := range paths {
		if len(w.byPath[path]) == 0 {
			continue
		}
		nodes, now := s.nodes(path), time.Now().UnixNano()
		for _, e := range w.byPath[path] {
			w.look(e, nodes, now)
		}
	}
}

func (w *waiting) look(e *expectation, nodes []string, now int64) {
	met := slices.Equal(nodes, e.Nodes)
	if e.Absent {
		met = nodes == nil
	}
	if met == e.met {
		return
	}
	e.met = met
	if met {
		e.at = now
		w.pending--
	} else {
		w.pending++
	}
}

// Returns when one of them was met, or with an empty key the last, and how many are not.
func (w *waiting) arrived(key string) (at int64, left int) {
	if e := w.byKey[key]; e != nil {
		if e.met {
			return e.at, 0
		}
		return 0, 1
	}
	if w.pending == 0 {
		for _, e := range w.byKey {
			at = max(at, e.at)
		}
	}
	return at, w.pending
}
