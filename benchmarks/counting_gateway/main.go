// An Admin API in memory that counts: the fast stand-in for a gateway that the benchmarks write to.
//
// It keeps every record, adds a set latency to each write, checks nothing and proxies nothing.
//
//	GET  /stats   counters by method, first and last write in Unix nanoseconds
//	POST /reset   counters and log to zero; the records stay
//	GET  /log     every write since the last reset: [Unix nanoseconds, method, path, body]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const admin = "/apisix/admin/"

type write struct {
	at           int64
	method, path string
	body         json.RawMessage
}

func (w write) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{w.at, w.method, w.path, w.body})
}

type gateway struct {
	latency time.Duration
	mutex   sync.Mutex
	records map[string]map[string]json.RawMessage
	counts  map[string]int
	writes  []write
}

func (g *gateway) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case in.URL.Path == "/stats":
		g.answer(out, http.StatusOK, g.stats())
	case in.URL.Path == "/reset":
		g.reset()
		g.answer(out, http.StatusOK, map[string]any{})
	case in.URL.Path == "/log":
		g.mutex.Lock()
		writes := append([]write{}, g.writes...)
		g.mutex.Unlock()
		g.answer(out, http.StatusOK, writes)
	case strings.HasPrefix(in.URL.Path, admin):
		g.admin(out, in.Method, strings.TrimPrefix(in.URL.Path, admin), body)
	default:
		g.answer(out, http.StatusNotFound, map[string]any{"error_msg": "not found"})
	}
}

func (g *gateway) admin(out http.ResponseWriter, method, path string, body []byte) {
	kind, id, _ := strings.Cut(path, "/")
	g.mutex.Lock()
	g.counts[method]++
	g.mutex.Unlock()
	switch method {
	case http.MethodGet:
		g.get(out, kind, id)
	case http.MethodPut:
		time.Sleep(g.latency)
		g.put(out, kind, id, body)
	case http.MethodDelete:
		time.Sleep(g.latency)
		g.delete(out, kind, id)
	default:
		g.answer(out, http.StatusMethodNotAllowed, map[string]any{"error_msg": "method not allowed"})
	}
}

func (g *gateway) get(out http.ResponseWriter, kind, id string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if id != "" {
		if body, found := g.records[kind][id]; found {
			g.answer(out, http.StatusOK, entry(kind, id, body))
			return
		}
		g.answer(out, http.StatusNotFound, map[string]any{"message": "Key not found"})
		return
	}
	list := []any{}
	for id, body := range g.records[kind] {
		list = append(list, entry(kind, id, body))
	}
	g.answer(out, http.StatusOK, map[string]any{"list": list, "total": len(list)})
}

func (g *gateway) put(out http.ResponseWriter, kind, id string, body []byte) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.records[kind] == nil {
		g.records[kind] = map[string]json.RawMessage{}
	}
	status := http.StatusCreated
	if _, found := g.records[kind][id]; found {
		status = http.StatusOK
	}
	g.records[kind][id] = body
	g.note(http.MethodPut, kind+"/"+id, body)
	g.answer(out, status, entry(kind, id, body))
}

func (g *gateway) delete(out http.ResponseWriter, kind, id string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if _, found := g.records[kind][id]; !found {
		g.answer(out, http.StatusNotFound, map[string]any{"message": "Key not found"})
		return
	}
	delete(g.records[kind], id)
	g.note(http.MethodDelete, kind+"/"+id, nil)
	g.answer(out, http.StatusOK, map[string]any{"key": "/apisix/" + kind + "/" + id, "deleted": "1"})
}

func (g *gateway) note(method, path string, body json.RawMessage) {
	g.writes = append(g.writes, write{time.Now().UnixNano(), method, path, body})
}

func (g *gateway) reset() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.writes, g.counts = nil, map[string]int{}
}

func (g *gateway) stats() map[string]any {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	held := map[string]int{}
	for kind, records := range g.records {
		held[kind] = len(records)
	}
	stats := map[string]any{"counts": g.counts, "records": held, "writes": len(g.writes)}
	if len(g.writes) > 0 {
		stats["first"], stats["last"] = g.writes[0].at, g.writes[len(g.writes)-1].at
	}
	encoded, _ := json.Marshal(stats) // while the maps are ours
	var copied map[string]any
	_ = json.Unmarshal(encoded, &copied)
	return copied
}

func entry(kind, id string, body json.RawMessage) map[string]any {
	return map[string]any{"key": "/apisix/" + kind + "/" + id, "value": body}
}

func (g *gateway) answer(out http.ResponseWriter, status int, body any) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	if err := json.NewEncoder(out).Encode(body); err != nil {
		log.Print(err)
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	latency := flag.Duration("write-latency", 0, "added to each write")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	g := &gateway{latency: *latency, records: map[string]map[string]json.RawMessage{}, counts: map[string]int{}}
	log.Fatal(http.Serve(listener, g))
}
