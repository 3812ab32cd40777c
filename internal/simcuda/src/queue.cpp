// Streams and events. Work runs when something waits for it: in an order that the streams
// and events allow, drawn by SIMCUDA_SEED, so that a wait that was forgotten shows.
#include "sim.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>

struct Event {
  Context *ctx;
  bool timing;
  MarkRef mark; // of the last record
};

static std::vector<Stream *> streams; // in the order of their making: the draw depends on it
static std::set<Event *> events;
static size_t queued, held; // operations and the bytes that they hold

static const size_t mostQueued = 1 << 14, mostHeld = 64 << 20;

Stream *newStream(Context *c, bool blocking) {
  Stream *s = new Stream{c, blocking, {}};
  streams.push_back(s);
  return s;
}

static bool live(Stream *s) {
  for (Stream *t : streams)
    if (t == s) return true;
  return false;
}

// 0 and 1 are the default stream, in a way that depends on how a program was compiled.
CUresult streamOf(void *handle, Stream **s) {
  Context *c = current();
  *s = (uintptr_t)handle <= 1 ? c->null : (Stream *)handle;
  return live(*s) && (*s)->ctx == c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void clear(Stream *s) {
  for (Op &op : s->ops) {
    if (!op.run) continue;
    queued--, held -= op.bytes;
  }
  s->ops.clear();
}

// fail makes all later calls in the context fail. What it had queued is lost, and its
// marks count as passed.
CUresult fail(Context *c, CUresult r) {
  c->error = r;
  for (Stream *s : streams)
    if (s->ctx == c) clear(s);
  return r;
}

static bool ready(Stream *s) {
  while (!s->ops.empty() && !s->ops.front().run) {
    const Mark &m = *s->ops.front().wait;
    if (!m.done && alive(m.stream->ctx) && !m.stream->ctx->error) return false;
    s->ops.pop_front();
  }
  return !s->ops.empty();
}

static void step(Stream *s) {
  Op op = std::move(s->ops.front());
  s->ops.pop_front();
  queued--, held -= op.bytes;
  if (CUresult r = op.run()) fail(s->ctx, r);
}

// runUntil runs work until the mark is passed. Either only what the mark needs, or what
// else can run as well, mixed by chance, or all of it first.
void runUntil(const MarkRef &m) {
  int mode = random64() % 3;
  openMemory();
  while (!m->done && alive(m->stream->ctx) && !m->stream->ctx->error) {
    Stream *s = m->stream;
    if (mode == 0 || (mode == 1 && random64() % 4 == 0))
      while (!ready(s)) s = s->ops.front().wait->stream;
    else {
      std::vector<Stream *> can;
      for (Stream *t : streams)
        if ((mode == 1 || t != s) && ready(t)) can.push_back(t);
      if (can.empty()) {
        mode = 0;
        continue;
      }
      s = can[random64() % can.size()];
    }
    step(s);
  }
  closeMemory();
}

static void append(Stream *s, Op op) {
  if (op.run) queued++, held += op.bytes;
  s->ops.push_back(std::move(op));
}

// A mark at the end of a stream.
MarkRef markOf(Stream *s) {
  auto m = std::make_shared<Mark>();
  m->stream = s;
  m->done = s->ops.empty();
  Op op{[m] {
          m->done = true;
          m->ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
          return CUDA_SUCCESS;
        },
        nullptr, 0};
  if (m->done) op.run();
  else append(s, std::move(op));
  return m;
}

// Work of the default stream begins after, and ends before, that of all streams of its
// context that were not made non-blocking.
static void orderDefault(Stream *s) {
  if (s == s->ctx->null) {
    for (Stream *t : streams)
      if (t->ctx == s->ctx && t != s && t->blocking && !t->ops.empty()) append(s, {nullptr, markOf(t), 0});
  } else if (s->blocking && !s->ctx->null->ops.empty())
    append(s, {nullptr, markOf(s->ctx->null), 0});
}

void push(Stream *s, std::function<CUresult()> run, size_t bytes) {
  orderDefault(s);
  append(s, {std::move(run), nullptr, bytes});
  if (queued > mostQueued || held > mostHeld) runUntil(markOf(s));
}

void drain(Context *c) {
  std::vector<MarkRef> marks;
  for (Stream *s : streams)
    if (s->ctx == c && !s->ops.empty()) marks.push_back(markOf(s));
  for (auto &m : marks) runUntil(m);
}

void drainDevice(int device) {
  std::set<Context *> all;
  for (Stream *s : streams)
    if (s->ctx->device == device) all.insert(s->ctx);
  for (Context *c : all) drain(c);
}

void dropContext(Context *c) {
  for (size_t i = 0; i < streams.size();) {
    if (streams[i]->ctx != c) {
      i++;
      continue;
    }
    clear(streams[i]);
    streams.erase(streams.begin() + i); // the memory stays: marks name it
  }
  for (auto it = events.begin(); it != events.end();)
    if ((*it)->ctx == c) it = events.erase(it);
    else ++it;
}

API cuStreamCreateWithPriority(Stream **s, unsigned flags, int) {
  ENTER;
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  *s = newStream(ctx, flags == 0);
  return CUDA_SUCCESS;
}
API cuStreamCreate(Stream **s, unsigned flags) { return cuStreamCreateWithPriority(s, flags, 0); }
API cuStreamDestroy_v2(void *handle) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  if (s == ctx->null) return CUDA_ERROR_INVALID_HANDLE;
  runUntil(markOf(s)); // the real driver lets its work run on
  for (size_t i = 0; i < streams.size(); i++)
    if (streams[i] == s) streams.erase(streams.begin() + i);
  return CUDA_SUCCESS;
}
API cuStreamSynchronize(void *handle) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  orderDefault(s);
  runUntil(markOf(s));
  return ctx->error;
}

// poll lets some work run, as time would.
static void poll(const MarkRef &m) {
  if (m->done) return;
  openMemory();
  for (int n = random64() % 8; n > 0; n--) {
    std::vector<Stream *> can;
    for (Stream *t : streams)
      if (ready(t)) can.push_back(t);
    if (can.empty()) break;
    step(can[random64() % can.size()]);
  }
  closeMemory();
}
API cuStreamQuery(void *handle) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  orderDefault(s);
  MarkRef m = markOf(s);
  poll(m);
  return ctx->error ? ctx->error : m->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
API cuStreamGetFlags(void *handle, unsigned *flags) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  *flags = !s->blocking;
  return CUDA_SUCCESS;
}
API cuStreamGetPriority(void *handle, int *priority) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  *priority = 0;
  return CUDA_SUCCESS;
}
API cuStreamGetCtx(void *handle, Context **c) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  *c = s->ctx;
  return CUDA_SUCCESS;
}
API cuLaunchHostFunc(void *handle, void (*fn)(void *), void *arg) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  push(s, [=] {
    fn(arg);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

API cuEventCreate(Event **e, unsigned flags) {
  ENTER;
  if (flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
  events.insert(*e = new Event{ctx, !(flags & 2), nullptr});
  return CUDA_SUCCESS;
}
API cuEventDestroy_v2(Event *e) {
  ENTER;
  if (!events.erase(e)) return CUDA_ERROR_INVALID_HANDLE;
  delete e;
  return CUDA_SUCCESS;
}
API cuEventRecord(Event *e, void *handle) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  if (!events.count(e) || e->ctx != ctx) return CUDA_ERROR_INVALID_HANDLE;
  orderDefault(s);
  e->mark = markOf(s);
  return CUDA_SUCCESS;
}
API cuEventRecordWithFlags(Event *e, void *handle, unsigned) { return cuEventRecord(e, handle); }
API cuStreamWaitEvent(void *handle, Event *e, unsigned) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  if (!events.count(e)) return CUDA_ERROR_INVALID_HANDLE;
  if (e->mark && !e->mark->done) append(s, {nullptr, e->mark, 0});
  return CUDA_SUCCESS;
}
API cuEventQuery(Event *e) {
  ENTER;
  if (!events.count(e)) return CUDA_ERROR_INVALID_HANDLE;
  if (!e->mark) return CUDA_SUCCESS;
  poll(e->mark);
  return ctx->error ? ctx->error : e->mark->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
API cuEventSynchronize(Event *e) {
  ENTER;
  if (!events.count(e)) return CUDA_ERROR_INVALID_HANDLE;
  if (e->mark) runUntil(e->mark);
  return ctx->error;
}
API cuEventElapsedTime(float *ms, Event *a, Event *b) {
  ENTER;
  if (!events.count(a) || !events.count(b) || !a->timing || !b->timing || !a->mark || !b->mark) return CUDA_ERROR_INVALID_HANDLE;
  if (!a->mark->done || !b->mark->done) return CUDA_ERROR_NOT_READY;
  *ms = b->mark->ms - a->mark->ms;
  return CUDA_SUCCESS;
}
