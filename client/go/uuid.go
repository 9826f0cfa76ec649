package main

import (
	"crypto/rand"
	"fmt"
	"log"
)

// newUUID draws a UUID of version 4.
func newUUID() string {
	var bits [16]byte
	if _, err := rand.Read(bits[:]); err != nil {
		log.Fatal(err)
	}
	bits[6] = bits[6]&0x0f | 0x40
	bits[8] = bits[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", bits[:4], bits[4:6], bits[6:8], bits[8:10], bits[10:])
}
