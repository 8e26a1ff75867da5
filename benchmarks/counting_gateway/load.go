package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

type writer func(client *http.Client, number int64) error

// Writes as fast as the other side takes it, with so many writes in flight; returns writes a second.
func load(write writer, concurrency, writes int) (float64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}
	var next atomic.Int64
	var group sync.WaitGroup
	failures := make(chan error, concurrency)
	began := time.Now()
	for range concurrency {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := next.Add(1); number <= int64(writes); number = next.Add(1) {
				if err := write(client, number); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	return float64(writes) / time.Since(began).Seconds(), <-failures
}

func upstreamWriter(admin, key string) writer {
	const body = `{"id":"%d","name":"raw_%d","type":"roundrobin","labels":{"managed-by":"raw"},` +
		`"nodes":[{"host":"10.1.0.1","port":8080,"weight":100},{"host":"10.2.0.1","port":8080,"weight":100}]}`
	return func(client *http.Client, number int64) error {
		url := fmt.Sprintf("%s/upstreams/%d", admin, number)
		return send(client, http.MethodPut, url, key, fmt.Appendf(nil, body, number, number))
	}
}

func revisionWriter(etcd string) writer {
	return func(client *http.Client, _ int64) error {
		return send(client, http.MethodPost, etcd+"/v3/kv/put", "", []byte(`{"key":"YmVuY2g=","value":"YmVuY2g="}`))
	}
}

func send(client *http.Client, method, url, key string, body []byte) error {
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-API-KEY", key)
	reply, err := client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err = io.Copy(io.Discard, reply.Body); err == nil && reply.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s", method, url, reply.Status)
	}
	return err
}
