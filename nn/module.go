// Package nn has layers as plain structs, and what walks them.
package nn

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
)

type Layer interface {
	Forward(x *snug.Tensor) *snug.Tensor
}

// Func makes a function a Layer: nn.Func((*snug.Tensor).Tanh).
type Func func(x *snug.Tensor) *snug.Tensor

func (f Func) Forward(x *snug.Tensor) *snug.Tensor { return f(x) }

// Params are m's parameters and buffers in the order of its exported fields, shared ones
// once under their first name. m is a struct, a slice or an array, or a pointer to one, of
// such and of *snug.Param; interfaces are looked into. What Init would refuse is left out.
func Params(m any) iter.Seq2[string, *snug.Param] {
	return func(yield func(string, *snug.Param) bool) {
		w := walker{param: yield, seen: map[any]bool{}}
		w.walk("", reflect.ValueOf(m))
	}
}

// Init places m on d, all or nothing, and makes known the paths of its layers. A nil r
// leaves zeros, for what is loaded next. Refused are a model without parameters, two of one
// name, and parameters that Params would miss: in unexported fields (unless exported ones
// have them too), in maps, or not behind a pointer. What a func captures nobody can see:
// such a layer fails when it is used.
func Init(ctx context.Context, d *snug.Device, m any, r *snug.Rand) error {
	if err := check(m); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err := snug.Place(ctx, d, r, memory.Parameters, Params(m)); err != nil {
		return err
	}
	layers(m, func(l any, path string) { d.Label(l, path) })
	return nil
}

// SetDType chooses the type of all parameters and of the buffers that are floats, before
// Init.
func SetDType(m any, d snug.DType) error {
	if !d.Float() {
		return fmt.Errorf("set dtype: %w: %s, a float wanted", snug.ErrDType, d)
	}
	for name, p := range Params(m) {
		if p.Device() != nil {
			return fmt.Errorf("set dtype: %w: %s is on %s already; the type is chosen before nn.Init", snug.ErrInUse, name, p.Device().Name())
		}
	}
	for _, p := range Params(m) {
		if p.DType().Float() {
			if err := p.SetDType(d); err != nil {
				return fmt.Errorf("set dtype: %w", err)
			}
		}
	}
	return nil
}

// Close frees what m has on its device. It may be called again. Of several errors it
// returns the first.
func Close(m any) error {
	var err error
	var d *snug.Device
	for _, p := range Params(m) {
		d = cmp.Or(p.Device(), d)
		err = cmp.Or(err, p.Close())
	}
	if err == nil && d != nil {
		layers(m, func(l any, _ string) { d.Label(l, "") })
	}
	return err
}

// Freeze stops gradients, and a batch norm's statistics.
func Freeze(m any)   { freeze(m, true) }
func Unfreeze(m any) { freeze(m, false) }

func freeze(m any, on bool) {
	for _, p := range Params(m) {
		p.SetFrozen(on)
	}
}

// layers calls fn with the pointer and the path of each struct in m.
func layers(m any, fn func(layer any, path string)) {
	w := walker{param: func(string, *snug.Param) bool { return true }, layer: fn, seen: map[any]bool{}}
	w.walk("", reflect.ValueOf(m))
}

type walker struct {
	param func(string, *snug.Param) bool
	layer func(layer any, path string)                    // may be nil
	other func(path string, f reflect.Value, what string) // of values not walked; may be nil
	seen  map[any]bool                                    // pointers
}

var paramType = reflect.TypeFor[*snug.Param]()

// walk reports whether to go on.
func (w *walker) walk(path string, v reflect.Value) bool {
	join := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || w.seen[pointer(v)] {
			return true
		}
		w.seen[pointer(v)] = true
		if v.Type() == paramType {
			return w.param(path, v.Interface().(*snug.Param))
		}
		return w.walk(path, v.Elem())
	case reflect.Interface:
		return v.IsNil() || w.walk(path, v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !w.walk(join(strconv.Itoa(i)), v.Index(i)) {
				return false
			}
		}
	case reflect.Struct:
		return w.walkFields(path, v, join)
	case reflect.Map:
		w.hidden(path, v, "a map: a slice or fields wanted")
	}
	return true
}

func (w *walker) walkFields(path string, v reflect.Value, join func(string) string) bool {
	if v.Type() == paramType.Elem() {
		w.hidden(path, v, "not a pointer: *snug.Param wanted")
		return true
	}
	if w.layer != nil && v.CanAddr() && v.Addr().CanInterface() {
		w.layer(v.Addr().Interface(), path)
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous: // its exported fields are v's
			if !w.walk(path, v.Field(i)) {
				return false
			}
		case f.IsExported():
			if !w.walk(join(Name(f.Name)), v.Field(i)) {
				return false
			}
		default:
			w.hidden(join(f.Name), v.Field(i), "not exported")
		}
	}
	return true
}

func (w *walker) hidden(path string, v reflect.Value, what string) {
	if w.other != nil {
		w.other(path, v, what)
	}
}

// Name is a field's name as torchvision writes it: RunningMean → running_mean, BN1 →
// bn1, FC → fc.
func Name(field string) string {
	var b strings.Builder
	last := ' '
	for _, r := range field {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return b.String()
}
