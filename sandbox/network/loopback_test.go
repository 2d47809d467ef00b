package network

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

const claimVariable = "NETWORK_TEST_CLAIM"

// TestMain lets the test binary be another process that holds a prefix.
func TestMain(m *testing.M) {
	if os.Getenv(claimVariable) != "" {
		k, _, err := ClaimLoopback(100+os.Getpid()%100, nil) // nobody takes it, who would all take the lowest that is free
		if err != nil {
			k = -1
		}
		_, _ = io.WriteString(os.Stdout, strconv.Itoa(k)+"\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	os.Exit(m.Run())
}

func TestClaimLoopback(t *testing.T) {
	first, release, err := ClaimLoopback(77, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first == 0 {
		t.Skip("this system has 127.0.0.1 only")
	}
	second, releaseSecond, err := ClaimLoopback(first, map[int]bool{2: true, 3: true})
	if err != nil {
		t.Fatal(err)
	}
	defer releaseSecond()
	if second == first || second <= 3 {
		t.Errorf("after 127.%d, 127.%d was given", first, second)
	}
	release()
	release() // again
	again, release, err := ClaimLoopback(first, nil)
	if err != nil || again != first {
		t.Errorf("127.%d is free, but 127.%d was given: %v", first, again, err)
	}
	release()
}

func TestClaimOfAnotherProcess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), claimVariable+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || theirs < 0 {
		t.Fatalf("the other process: %q, %v", line, err)
	}
	if theirs == 0 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Skip("this system has 127.0.0.1 only")
	}
	ours, release, err := ClaimLoopback(theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if ours == theirs {
		t.Errorf("two processes have 127.%d", ours)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	ours, release, err = ClaimLoopback(theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if ours != theirs {
		t.Errorf("127.%d of a dead process is not free", theirs)
	}
}
