package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// raw is a file with this header and so many bytes of data.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func readBytes(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

func TestReadRefuses(t *testing.T) {
	one := func(dtype, shape string, begin, end int) string {
		return fmt.Sprintf(`{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, dtype, shape, begin, end)
	}
	a := one("F32", "[2]", 0, 8)
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "at least 8 bytes"},
		{"length only", raw("", 0), "not a JSON object"},
		{"huge length", binary.LittleEndian.AppendUint64(nil, 1<<40), "at most 100000000"},
		{"length that is negative as int64", binary.LittleEndian.AppendUint64(nil, 1<<63), "at most 100000000"},
		{"long length", binary.LittleEndian.AppendUint64(nil, 100), "only 0 follow"},
		{"not JSON", raw("hello", 0), "not a JSON object"},
		{"a list", raw("[]", 0), "not a JSON object"},
		{"cut JSON", raw(`{"a":`, 0), "EOF"},
		{"after the JSON", raw(`{}{}`, 0), "after its end"},
		{"not UTF-8", raw("{\"\xff\":"+a+"}", 8), "UTF-8"},
		{"entry is a number", raw(`{"a":1}`, 0), "not a JSON object"},
		{"no shape", raw(`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, 8), "no shape"},
		{"null shape", raw(`{"a":`+one("F32", "null", 0, 4)+`}`, 4), "null"},
		{"null dimension", raw(`{"a":`+one("F32", "[null]", 0, 0)+`}`, 0), "from 0 on"},
		{"fraction", raw(`{"a":`+one("F32", "[1.5]", 0, 6)+`}`, 6), "shape"},
		{"negative", raw(`{"a":`+one("F32", "[-2]", 0, 8)+`}`, 8), "from 0 on"},
		{"dtype", raw(`{"a":`+one("F31", "[2]", 0, 8)+`}`, 8), `unknown dtype "F31"`},
		{"offsets backwards", raw(`{"a":`+one("F32", "[2]", 8, 0)+`}`, 8), "begin and end"},
		{"size", raw(`{"a":`+one("F32", "[3]", 0, 8)+`}`, 8), "12 bytes"},
		{"overflow to 0", raw(`{"a":`+one("F32", "[4294967296,4294967296]", 0, 0)+`}`, 0), "2^63"},
		{"overflow to negative", raw(`{"a":`+one("F32", "[2305843009213693952]", 0, 0)+`}`, 0), "2^63"},
		{"twice", raw(`{"a":`+a+`,"a":`+a+`}`, 8), `"a" comes twice`},
		{"overlap", raw(`{"a":`+a+`,"b":`+one("F32", "[2]", 4, 12)+`}`, 12), "inside the one before"},
		{"same place", raw(`{"a":`+a+`,"b":`+a+`}`, 8), "inside the one before"},
		{"gap", raw(`{"a":`+a+`,"b":`+one("F32", "[2]", 9, 17)+`}`, 17), "gap of 1 bytes"},
		{"truncated", raw(`{"a":`+a+`}`, 7), "truncated"},
		{"trailing", raw(`{"a":`+a+`}`, 9), "1 bytes after the last tensor"},
		{"metadata", raw(`{"__metadata__":{"k":1}}`, 0), "want a string"},
		{"metadata twice", raw(`{"__metadata__":{"k":"1","k":"2"}}`, 0), "twice"},
	} {
		if _, err := readBytes(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", c.name, err, c.want)
		}
	}
}

func TestOpenNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.safetensors")
	if err := os.WriteFile(path, raw("{}", 3), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want %s in it", err, path)
	}
}

// A header with members in any order, unknown members and no padding.
func TestRead(t *testing.T) {
	f, err := readBytes(raw(`{"b":{"shape":[],"data_offsets":[4,8],"dtype":"F32","x":0},"__metadata__":{"k":"v"},
		"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"none":{"dtype":"F64","shape":[3,0],"data_offsets":[4,4]}}  `, 8))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Names(); !slices.Equal(got, []string{"a", "none", "b"}) {
		t.Errorf("names %v", got)
	}
	if i, ok := f.Info("a"); !ok || i.DType != "U8" || !slices.Equal(i.Shape, []int{2, 2}) || i.Bytes != 4 {
		t.Errorf("a: %v %v", i, ok)
	}
	if m := f.Metadata(); m["k"] != "v" || len(m) != 1 {
		t.Errorf("metadata %v", m)
	}
	if b, err := f.Bytes("none"); err != nil || len(b) != 0 {
		t.Errorf("none: %v %v", b, err)
	}
	if _, err := f.Bytes("c"); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("c: %v", err)
	}
}

func TestValues(t *testing.T) {
	var buf bytes.Buffer
	err := Write(&buf, []Tensor{
		{Name: "h", DType: "F16", Shape: []int{2}, Data: []byte{0, 0x3c, 0, 0xc0}},
		{Name: "b", DType: "BF16", Shape: []int{1}, Data: []byte{0xc0, 0x3f}},
		{Name: "d", DType: "F64", Shape: nil, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.1))},
		{Name: "i", DType: "I8", Shape: []int{2}, Data: []byte{0xff, 1}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := readBytes(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := f.Float32s("h"); err != nil || !slices.Equal(v, []float32{1, -2}) {
		t.Errorf("F16: %v %v", v, err)
	}
	if v, err := f.Float64s("b"); err != nil || !slices.Equal(v, []float64{1.5}) {
		t.Errorf("BF16: %v %v", v, err)
	}
	if v, err := f.Float64s("d"); err != nil || !slices.Equal(v, []float64{0.1}) {
		t.Errorf("F64: %v %v", v, err)
	}
	if v, err := f.Int64s("i"); err != nil || !slices.Equal(v, []int64{-1, 1}) {
		t.Errorf("I8: %v %v", v, err)
	}
	if v, err := f.Float32s("d"); err == nil {
		t.Errorf("F64 as float32: %v", v)
	}
	if v, err := f.Int64s("h"); err == nil {
		t.Errorf("F16 as integers: %v", v)
	}
}

// A disk that fails in a tensor's bytes is that tensor's error.
func TestBytesFails(t *testing.T) {
	b := raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4)
	f, err := Read(failsFrom{bytes.NewReader(b), int64(len(b) - 4)}, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Bytes("a"); err == nil || !strings.Contains(err.Error(), iotest.ErrTimeout.Error()) {
		t.Errorf("got %v", err)
	}
}

type failsFrom struct {
	io.ReaderAt
	limit int64
}

func (f failsFrom) ReadAt(b []byte, at int64) (int, error) {
	if at >= f.limit {
		return 0, iotest.ErrTimeout
	}
	return f.ReaderAt.ReadAt(b, at)
}

// Whatever is accepted can be read to the last byte, and is covered without a gap.
func FuzzRead(f *testing.F) {
	f.Add(raw(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}}`, 8))
	f.Add(raw(`{"a":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]}}`, 0))
	f.Add(raw(`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"b":{"dtype":"I64","shape":[1],"data_offsets":[1,9]}} `, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := readBytes(b)
		if err != nil {
			return
		}
		var sum int64
		for _, name := range file.Names() {
			data, err := file.Bytes(name)
			i, ok := file.Info(name)
			if err != nil || !ok || int64(len(data)) != i.Bytes {
				t.Fatalf("%q: %d bytes, %v, %v", name, len(data), i, err)
			}
			sum += i.Bytes
		}
		if sum+8+int64(binary.LittleEndian.Uint64(b)) != int64(len(b)) {
			t.Fatalf("%d bytes of tensors in a file of %d", sum, len(b))
		}
	})
}
