// nats_load is the load tool of the publish bench: it publishes messages to a JetStream stream as
// fast as NATS' own Go client can, with acknowledgements, and prints what that took as JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type figures struct {
	Events  int     `json:"events"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`
}

func main() {
	url := flag.String("url", nats.DefaultURL, "server")
	subject := flag.String("subject", "", "subject of all messages")
	events := flag.Int("events", 1_000_000, "how many messages")
	payload := flag.String("payload", "", "file with the body of every message")
	pending := flag.Int("pending", 4_000, "messages that may wait for their acknowledgement")
	flag.Parse()
	took, err := load(*url, *subject, *payload, *events, *pending)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		log.Fatal(err)
	}
}

func load(url, subject, payload string, events, pending int) (figures, error) {
	body, err := os.ReadFile(payload)
	if err != nil {
		return figures{}, err
	}
	connection, err := nats.Connect(url)
	if err != nil {
		return figures{}, err
	}
	defer connection.Close()
	// Read only once all messages were answered.
	refused := make(chan error, events)
	stream, err := jetstream.New(
		connection,
		jetstream.WithPublishAsyncMaxPending(pending),
		jetstream.WithPublishAsyncErrHandler(
			func(_ jetstream.JetStream, _ *nats.Msg, err error) { refused <- err },
		),
	)
	if err != nil {
		return figures{}, err
	}
	started, cpu := time.Now(), cpuSeconds()
	for number := range events {
		message := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{
			"Nats-Msg-Id": {fmt.Sprintf("%032x", number)},
			"payloadCase": {"trade"},
			"dataType":    {"trade"},
		}}
		// A full window is no error here, however long it stays full.
		if _, err := stream.PublishMsgAsync(message, jetstream.WithStallWait(time.Minute)); err != nil {
			return figures{}, err
		}
	}
	<-stream.PublishAsyncComplete()
	took := figures{events, time.Since(started).Seconds(), cpuSeconds() - cpu}
	select {
	case err := <-refused:
		return figures{}, err
	default:
		return took, nil
	}
}

// cpuSeconds is what all threads of this process have used, in user and kernel mode.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
