#include "tests/e2e/failing_calls.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

namespace {

using phimap::e2e::FailingCall;
using phimap::e2e::FailingCalls;

FailingCalls* Mapped() {
  const char* const path = std::getenv(phimap::e2e::kFailingCallsVariable);
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const at = mmap(nullptr, sizeof(FailingCalls), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<FailingCalls*>(at);
}

FailingCalls* const calls = Mapped();

constexpr int kMostFrames = 64;

// Whether the libraries have been loaded. Some, such as OpenBLAS, start threads of their own then.
bool loaded = false;
__attribute__((constructor)) void NoteLoaded() {
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what backtrace needs, while allocations do not fail
  loaded = true;
}

// Whether a function of a library that cannot bear a lack of memory is among the callers.
bool InLibrary() {
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  for (int i = 0; i < count; ++i) {
    Dl_info of{};
    if (dladdr(frames[i], &of) == 0 || of.dli_fname == nullptr) continue;
    for (const char* name : {"libprotobuf", "libabsl", "libssl", "libcrypto", "libnghttp2"}) {
      if (std::strstr(of.dli_fname, name) != nullptr) return true;
    }
  }
  return false;
}

// Set on the thread of an event loop, which is the thread that waits for events.
thread_local bool on_loop = false;

bool Fails(FailingCall kind) {
  if (calls == nullptr || calls->kind.load() != kind) return false;
  const int64_t left = calls->until.fetch_sub(1);
  if (left != 1 && !(left < 1 && calls->and_all_later.load() != 0)) return false;
  calls->failed.fetch_add(1);
  return true;
}

bool FailsOnLoop(FailingCall kind) { return on_loop && Fails(kind); }

bool AllocationFails() {
  // backtrace and dladdr may allocate.
  static thread_local bool looking = false;
  if (looking || !FailsOnLoop(FailingCall::kAllocation)) return false;
  looking = true;
  if (InLibrary()) calls->failed_in_library.fetch_add(1);
  looking = false;
  return true;
}

bool SystemCallFails(int error) {
  if (!FailsOnLoop(FailingCall::kSystemCall)) return false;
  errno = error;
  return true;
}

}  // namespace

// protobuf leaks what it had begun to add to a message when it finds no memory.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

// The linker puts these in place of the functions of C in phimapd's own code, which nghttp2 uses
// too.
extern "C" {

void* __real_malloc(size_t size);
void* __real_calloc(size_t count, size_t size);
void* __real_realloc(void* memory, size_t size);

void* __wrap_malloc(size_t size) { return AllocationFails() ? nullptr : __real_malloc(size); }

void* __wrap_calloc(size_t count, size_t size) {
  return AllocationFails() ? nullptr : __real_calloc(count, size);
}

void* __wrap_realloc(void* memory, size_t size) {
  return AllocationFails() ? nullptr : __real_realloc(memory, size);
}

}  // extern "C"

namespace {

void* Allocate(size_t size, size_t alignment) {
  if (AllocationFails()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return __real_malloc(size > 0 ? size : 1);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* AllocateOrThrow(size_t size, size_t alignment) {
  void* const memory = Allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (loaded && Fails(FailingCall::kThread)) return EAGAIN;
  return create(thread, attributes, run, argument);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const time_t ahead = [] {
    const char* const seconds = std::getenv(phimap::e2e::kClockAheadVariable);
    return seconds == nullptr ? 0 : std::atol(seconds);
  }();
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += ahead;
  return result;
}

int epoll_wait(int epoll, epoll_event* events, int count, int timeout) {
  on_loop = true;
  return static_cast<int>(syscall(SYS_epoll_wait, epoll, events, count, timeout));
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (operation != EPOLL_CTL_DEL && SystemCallFails(ENOMEM)) return -1;
  return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

int accept4(int socket, sockaddr* address, socklen_t* size, int flags) {
  if (SystemCallFails(ENFILE)) return -1;
  return static_cast<int>(syscall(SYS_accept4, socket, address, size, flags));
}

ssize_t recv(int socket, void* data, size_t size, int flags) {
  if (SystemCallFails(ENOMEM)) return -1;
  return syscall(SYS_recvfrom, socket, data, size, flags, nullptr, nullptr);
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  if (SystemCallFails(ENOBUFS)) return -1;
  return syscall(SYS_sendmsg, socket, message, flags);
}

ssize_t read(int fd, void* data, size_t size) {
  if (SystemCallFails(ENOMEM)) return -1;
  return syscall(SYS_read, fd, data, size);
}

ssize_t write(int fd, const void* data, size_t size) {
  if (SystemCallFails(ENOBUFS)) return -1;
  return syscall(SYS_write, fd, data, size);
}

}  // extern "C"

void* operator new(size_t size) { return AllocateOrThrow(size, 1); }
void* operator new[](size_t size) { return AllocateOrThrow(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
