// SPDX-License-Identifier: MIT

// The server of `make bench-net` in Go: a goroutine for each connection.
//
//	run WORKERS
//
// Serves on loopback until its standard input ends. Prints `echo PORT` and `sink PORT`: one sends
// everything back, the other reads to the end and answers with the number of bytes.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"strconv"
)

// Buffers belong to connections: a read needs one before there is data. That of an echo is kept
// small for the many that are idle.
const (
	echoBuffer = 1024
	sinkBuffer = 64 * 1024
)

func echo(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, echoBuffer)
	for {
		size, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if _, err := conn.Write(buffer[:size]); err != nil {
			return
		}
	}
}

func sink(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, sinkBuffer)
	received := uint64(0)
	for {
		size, err := conn.Read(buffer)
		received += uint64(size)
		if err == io.EOF {
			break
		}
		if err != nil {
			return
		}
	}
	answer := make([]byte, 8)
	binary.LittleEndian.PutUint64(answer, received)
	conn.Write(answer)
}

func serve(name string, session func(net.Conn)) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(name, listener.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go session(conn)
		}
	}()
}

func workersOf(arguments []string) int {
	if len(arguments) == 2 {
		if workers, err := strconv.Atoi(arguments[1]); err == nil && workers >= 1 {
			return workers
		}
	}
	fmt.Fprintln(os.Stderr, "usage: run WORKERS")
	os.Exit(2)
	return 0
}

func main() {
	runtime.GOMAXPROCS(workersOf(os.Args))
	serve("echo", echo)
	serve("sink", sink)
	io.Copy(io.Discard, os.Stdin)
}
