// Builds F2 from the rows of letter.csv on a phimapd, and maps the first of them by one or more servers. Or predicts their labels by
// a version that was trained, as by `phimap train letters-go@1 --input=letter.csv --label=label --learner=ridge`.
//
//	letter -servers=HOST:PORT -csv=letter.csv -service_config=FILE -out=features.bin
//	letter -servers=ADDRESS:PORT,ADDRESS:PORT -reference=letters-go@1 -seconds=5 ...
//	letter -servers=HOST:PORT -predict=letters-go@2 ...
//
// The stubs are generated from proto/phimap/v1 (tests/full/go_example.sh). gRPC repeats calls as the service config says; grpc-go
// before 1.40 does so with GRPC_GO_RETRY=on in the environment.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/ioutil"
	"log"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/golang/protobuf/ptypes"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	pb "phimap.dev/api/v1"
)

const (
	maxMessageBytes = 64 << 20
	rowsPerMessage  = 5000
	rowsMapped      = 1000
	rowsPredicted   = 5
	callTimeout     = 30 * time.Second
)

var (
	servers       = flag.String("servers", "127.0.0.1:7450", "addresses of servers with the same versions, with commas between")
	csvPath       = flag.String("csv", "lab/data/letter.csv", "rows; the last column is the label, which no mapping sees")
	serviceConfig = flag.String("service_config", "client/python/phimap/service_config.json", "timeouts and retries of all calls")
	reference     = flag.String("reference", "", "version that maps; without it, one is built")
	seconds       = flag.Float64("seconds", 0, "goes on mapping for this time")
	predicting    = flag.String("predict", "", "version with a head, which predicts; nothing is built then")
	out           = flag.String("out", "features.bin", "features of the first rows, as they were answered")
)

func main() {
	flag.Parse()
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(explained(err))
	}
}

func run() error {
	connection, err := connect(strings.Split(*servers, ","))
	if err != nil {
		return err
	}
	defer connection.Close()
	rows, err := readRows(*csvPath)
	if err != nil {
		return err
	}
	if *predicting != "" {
		return predict(pb.NewPredictServiceClient(connection), *predicting, rows[:rowsPredicted])
	}
	version := *reference
	if version == "" {
		built, err := build(pb.NewMappingServiceClient(connection), "letters-go", rows)
		if err != nil {
			return err
		}
		version = fmt.Sprintf("%s@%d", built.Name, built.Number)
	}
	features, err := mapRows(pb.NewTransformServiceClient(connection), version, rows[:rowsMapped])
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d rows × %d features\n", version, features.Rows, features.Columns)
	calls := 1
	for end := time.Now().Add(time.Duration(*seconds * float64(time.Second))); time.Now().Before(end); calls++ {
		again, err := mapRows(pb.NewTransformServiceClient(connection), version, rows[:rowsMapped])
		if err != nil {
			return fmt.Errorf("call %d: %w", calls, err)
		}
		if !bytes.Equal(again.GetFloat32Le(), features.GetFloat32Le()) {
			return errors.New("two servers answered different features")
		}
	}
	if *seconds > 0 {
		fmt.Printf("%d calls\n", calls)
	}

	// What a mistake looks like.
	_, err = mapRows(pb.NewTransformServiceClient(connection), version, [][]float32{{1, 2, 3}})
	fmt.Println(explained(err))
	return ioutil.WriteFile(*out, features.GetFloat32Le(), 0o644)
}

// connect returns a connection to all servers, which take the calls in turn. TLS would be grpc.WithTransportCredentials, and a
// token grpc.WithPerRPCCredentials.
func connect(addresses []string) (*grpc.ClientConn, error) {
	list := manual.NewBuilderWithScheme("list")
	var state resolver.State
	for _, address := range addresses {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address})
	}
	list.InitialState(state)
	text, err := ioutil.ReadFile(*serviceConfig)
	if err != nil {
		return nil, err
	}
	config := map[string]interface{}{}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	config["loadBalancingConfig"] = []interface{}{map[string]interface{}{"round_robin": struct{}{}}}
	text, err = json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return grpc.Dial("list:///servers", grpc.WithInsecure(), grpc.WithResolvers(list), grpc.WithDefaultServiceConfig(string(text)),
		// A call that finds no connection waits for one, as long as its time lasts.
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxMessageBytes)))
}

// build streams the rows, and returns the version. A broken stream is not repeated here: sent again with the same build id, the
// call would attach to the build.
func build(client pb.MappingServiceClient, name string, rows [][]float32) (*pb.VersionRef, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	stream, err := client.Build(ctx)
	if err != nil {
		return nil, err
	}
	spec := &pb.BuildSpec{Name: name, BuildId: newUUID(), Spec: "f2(landmarks=100)", Kernel: "rbf(gamma=scale)", Standardize: true}
	requests := []*pb.BuildRequest{{Message: &pb.BuildRequest_Spec{Spec: spec}}}
	for begin := 0; begin < len(rows); begin += rowsPerMessage {
		end := begin + rowsPerMessage
		if end > len(rows) {
			end = len(rows)
		}
		requests = append(requests, &pb.BuildRequest{Message: &pb.BuildRequest_Examples{Examples: dense(rows[begin:end])}})
	}
	requests = append(requests, &pb.BuildRequest{Message: &pb.BuildRequest_Finish{Finish: &pb.BuildFinish{RowCount: int64(len(rows))}}})
	for _, request := range requests {
		if err := stream.Send(request); err != nil {
			break // Recv returns the error of the call
		}
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	for {
		event, err := stream.Recv()
		if err == io.EOF {
			return nil, errors.New("the server ended the build without a version")
		}
		if err != nil {
			return nil, err
		}
		if version := event.GetVersion(); version != nil {
			return version.Ref, nil
		}
	}
}

func mapRows(client pb.TransformServiceClient, version string, rows [][]float32) (*pb.DenseRows, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := client.Transform(ctx, &pb.TransformRequest{Reference: version, Examples: dense(rows)})
	return answer.GetFeatures(), err
}

// predict prints, for each row, its class, the class's probability, and the classes of a set that holds the true one in 9 of 10 rows.
func predict(client pb.PredictServiceClient, version string, rows [][]float32) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := client.Predict(ctx, &pb.PredictRequest{
		Reference: version, Examples: dense(rows), Probabilities: true, Confidence: 0.9})
	if err != nil {
		return err
	}
	values := answer.Probabilities.GetFloat64Le()
	for i, class := range answer.Labels {
		at := 8 * (i*len(answer.ClassNames) + int(class))
		probability := math.Float64frombits(binary.LittleEndian.Uint64(values[at:]))
		var set []string
		for _, member := range answer.Sets[i].Classes {
			set = append(set, answer.ClassNames[member])
		}
		fmt.Printf("%s %.3f {%s}\n", answer.ClassNames[class], probability, strings.Join(set, " "))
	}
	return nil
}

// explained returns an error of a call with the server's own details: the reason, the field, and when to call again.
func explained(err error) string {
	said := status.Convert(err)
	text := fmt.Sprintf("%s: %s", said.Code(), said.Message())
	for _, detail := range said.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			text += fmt.Sprintf("; reason %s, %s", detail.Reason, asJSON(detail.Metadata))
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				text += fmt.Sprintf("; field %s", violation.Field)
			}
		case *errdetails.RetryInfo:
			if delay, err := ptypes.Duration(detail.RetryDelay); err == nil {
				text += fmt.Sprintf("; call again after %s", delay)
			}
		}
	}
	return text
}

func asJSON(metadata map[string]string) string {
	text, _ := json.Marshal(metadata) // a map of texts always has a form
	return string(text)
}

// dense returns rows as bytes of float32, little-endian.
func dense(rows [][]float32) *pb.Examples {
	values := make([]byte, 0, 4*len(rows)*len(rows[0]))
	for _, row := range rows {
		for _, value := range row {
			values = append(values, 0, 0, 0, 0)
			binary.LittleEndian.PutUint32(values[len(values)-4:], math.Float32bits(value))
		}
	}
	return &pb.Examples{Kind: &pb.Examples_Dense{Dense: &pb.DenseRows{
		Rows: int32(len(rows)), Columns: int32(len(rows[0])), Values: &pb.DenseRows_Float32Le{Float32Le: values}}}}
}

func readRows(path string) ([][]float32, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var rows [][]float32
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		if number == 1 {
			continue // the header
		}
		cells := strings.Split(lines.Text(), ",")
		row := make([]float32, len(cells)-1)
		for i := range row {
			value, err := strconv.ParseFloat(cells[i], 32)
			if err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", path, number, err)
			}
			row[i] = float32(value)
		}
		rows = append(rows, row)
	}
	return rows, lines.Err()
}
