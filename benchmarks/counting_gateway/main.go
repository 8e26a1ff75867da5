// An Admin API in memory that counts, and knows when what is expected has arrived: the fast stand-in for a gateway
// that the benchmarks write to. It adds a set latency to each write, checks no schema and proxies nothing.
//
//	GET  /stats             counters; first and last write, last read in Unix nanoseconds
//	POST /reset             counters to zero; the records stay
//	POST /expect            {"clear": bool, "items": [{"key", "path", "nodes", "absent"}]}
//	GET  /wait?timeout=10s  waits until all that is expected is there, or with &key= that alone
//	GET  /met               key -> Unix nanoseconds, of what is there
//	POST /wipe?kind=routes&count=10
//
// With -load URL it is the client instead: it writes as fast as it can and prints writes a second. With -raise URL it
// makes so many revisions in an etcd: younger than a real one's, they would compare as numbers and as texts alike.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const admin = "/apisix/admin/"

// How often a waiting request looks again; the time it reports is exact all the same.
const waitStep = 2 * time.Millisecond

type gateway struct {
	latency time.Duration
	mutex   sync.Mutex
	shelf   *shelf
	waiting *waiting
	tally   tally
}

type tally struct {
	Counts   map[string]int `json:"counts"` // "PUT routes" -> requests
	Writes   int            `json:"writes"`
	Reads    int            `json:"reads"`
	NoOps    int            `json:"noops"` // writes that changed nothing
	First    int64          `json:"first_write"`
	Last     int64          `json:"last_write"`
	LastRead int64          `json:"last_read"`
	InFlight int            `json:"-"`
	Peak     int            `json:"peak_in_flight"`
	BytesIn  int            `json:"bytes_in"`
	BytesOut int            `json:"bytes_out"`
	Pending  int            `json:"pending"`
	Held     map[string]int `json:"held"`
	Now      int64          `json:"now"`
}

func (g *gateway) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	if path, found := strings.CutPrefix(in.URL.Path, admin); found {
		g.admin(out, in.Method, path, body)
		return
	}
	switch in.URL.Path {
	case "/stats":
		answer(out, http.StatusOK, g.stats())
	case "/reset":
		g.reset()
		answer(out, http.StatusOK, map[string]any{})
	case "/expect":
		g.expect(out, body)
	case "/wait":
		g.wait(out, in.URL.Query().Get("key"), in.URL.Query().Get("timeout"))
	case "/met":
		answer(out, http.StatusOK, g.met())
	case "/wipe":
		g.wipe(out, in.URL.Query().Get("kind"), in.URL.Query().Get("count"))
	default:
		answer(out, http.StatusNotFound, map[string]any{"error_msg": "not found"})
	}
}

func (g *gateway) admin(out http.ResponseWriter, method, path string, body []byte) {
	kind, name := split(path)
	g.begin(method, kind, body)
	status, reply := http.StatusMethodNotAllowed, any(map[string]any{"error_msg": "method not allowed"})
	switch method {
	case http.MethodGet:
		status, reply = g.get(kind, name)
	case http.MethodPut:
		time.Sleep(g.latency)
		status, reply = g.put(path, body)
	case http.MethodDelete:
		time.Sleep(g.latency)
		status, reply = g.delete(path)
	}
	sent := answer(out, status, reply)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.tally.BytesOut += sent
	if method != http.MethodGet {
		g.tally.InFlight--
	}
}

func (g *gateway) begin(method, kind string, body []byte) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	t := &g.tally
	t.Counts[method+" "+kind]++
	t.BytesIn += len(body)
	if method == http.MethodGet {
		t.Reads++
		t.LastRead = time.Now().UnixNano()
		return
	}
	t.InFlight++
	t.Peak = max(t.Peak, t.InFlight)
}

// Counts a write that was carried out. The caller holds the lock.
func (g *gateway) wrote(changed bool, paths []string) {
	t, now := &g.tally, time.Now().UnixNano()
	t.Writes++
	t.Last = now
	if t.First == 0 {
		t.First = now
	}
	if !changed {
		t.NoOps++
	}
	g.waiting.recheck(paths, g.shelf)
}

func (g *gateway) get(kind, name string) (int, any) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if name != "" {
		if found := g.shelf.find(kind + "/" + name); found != nil {
			return http.StatusOK, entry(kind, name, found.body)
		}
		return http.StatusNotFound, map[string]any{"message": "Key not found"}
	}
	list := []any{}
	for name, record := range g.shelf.kinds[kind] {
		list = append(list, entry(kind, name, record.body))
	}
	return http.StatusOK, map[string]any{"list": list, "total": len(list)}
}

func (g *gateway) put(path string, body []byte) (int, any) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	created, changed, paths, err := g.shelf.put(path, body)
	if err != nil {
		return http.StatusBadRequest, map[string]any{"error_msg": err.Error()}
	}
	g.wrote(changed, paths)
	kind, name := split(path)
	if created {
		return http.StatusCreated, entry(kind, name, body)
	}
	return http.StatusOK, entry(kind, name, body)
}

func (g *gateway) delete(path string) (int, any) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.shelf.find(path) == nil {
		g.wrote(false, nil)
		return http.StatusNotFound, map[string]any{"message": "Key not found"}
	}
	g.wrote(true, g.shelf.drop(path))
	return http.StatusOK, map[string]any{"key": "/apisix/" + path, "deleted": "1"}
}

func (g *gateway) expect(out http.ResponseWriter, body []byte) {
	var asked struct {
		Clear bool           `json:"clear"`
		Items []*expectation `json:"items"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		answer(out, http.StatusBadRequest, map[string]any{"error_msg": err.Error()})
		return
	}
	g.mutex.Lock()
	if asked.Clear {
		g.waiting = newWaiting()
	}
	for _, item := range asked.Items {
		g.waiting.expect(item, g.shelf)
	}
	pending := g.waiting.pending
	g.mutex.Unlock()
	answer(out, http.StatusOK, map[string]any{"pending": pending})
}

func (g *gateway) wait(out http.ResponseWriter, key, timeout string) {
	seconds, err := time.ParseDuration(timeout)
	if err != nil {
		answer(out, http.StatusBadRequest, map[string]any{"error_msg": err.Error()})
		return
	}
	for over := time.Now().Add(seconds); ; time.Sleep(waitStep) {
		g.mutex.Lock()
		at, left := g.waiting.arrived(key)
		g.mutex.Unlock()
		if left == 0 || time.Now().After(over) {
			answer(out, http.StatusOK, map[string]any{"done": left == 0, "pending": left, "at": at})
			return
		}
	}
}

func (g *gateway) met() map[string]int64 {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	met := map[string]int64{}
	for key, e := range g.waiting.byKey {
		if e.met {
			met[key] = e.at
		}
	}
	return met
}

// Loses some records, as a gateway does whose store was put back.
func (g *gateway) wipe(out http.ResponseWriter, kind, count string) {
	left, _ := strconv.Atoi(count)
	g.mutex.Lock()
	lost := []string{}
	for name := range g.shelf.kinds[kind] {
		if left--; left < 0 {
			break
		}
		lost = append(lost, name)
	}
	for _, name := range lost {
		g.waiting.recheck(g.shelf.drop(kind+"/"+name), g.shelf)
	}
	pending := g.waiting.pending
	g.mutex.Unlock()
	answer(out, http.StatusOK, map[string]any{"wiped": len(lost), "pending": pending, "at": time.Now().UnixNano()})
}

func (g *gateway) reset() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.tally = tally{Counts: map[string]int{}, InFlight: g.tally.InFlight}
}

func (g *gateway) stats() tally {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	copied := g.tally
	copied.Counts, copied.Held = map[string]int{}, map[string]int{}
	for what, count := range g.tally.Counts {
		copied.Counts[what] = count
	}
	for kind, records := range g.shelf.kinds {
		copied.Held[kind] = len(records)
	}
	copied.Pending, copied.Now = g.waiting.pending, time.Now().UnixNano()
	return copied
}

func split(path string) (kind, name string) {
	kind, name, _ = strings.Cut(path, "/")
	return
}

func entry(kind, name string, body json.RawMessage) map[string]any {
	return map[string]any{"key": "/apisix/" + kind + "/" + name, "value": body, "createdIndex": 1, "modifiedIndex": 1}
}

func answer(out http.ResponseWriter, status int, body any) int {
	text, err := json.Marshal(body)
	if err != nil {
		log.Print(err)
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	sent, _ := out.Write(text) // a client that went away is none of our business
	return sent
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	latency := flag.Duration("write-latency", 0, "added to each write")
	target := flag.String("load", "", "URL of an Admin API to write to instead")
	etcd := flag.String("raise", "", "URL of an etcd to raise the revision of instead")
	key := flag.String("key", "", "its admin key")
	concurrency := flag.Int("concurrency", 16, "writes in flight")
	writes := flag.Int("writes", 4000, "how many")
	flag.Parse()
	if *target != "" || *etcd != "" {
		write := upstreamWriter(*target, *key)
		if *etcd != "" {
			write = revisionWriter(*etcd)
		}
		rate, err := load(write, *concurrency, *writes)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.0f\n", rate)
		return
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	g := &gateway{latency: *latency, shelf: newShelf(), waiting: newWaiting(), tally: tally{Counts: map[string]int{}}}
	log.Fatal(http.Serve(listener, g))
}
