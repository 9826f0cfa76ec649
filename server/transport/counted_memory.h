// An allocator for nghttp2 that counts what a session holds.
#ifndef PHIMAP_SERVER_TRANSPORT_COUNTED_MEMORY_H_
#define PHIMAP_SERVER_TRANSPORT_COUNTED_MEMORY_H_

#include <malloc.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace phimap {

// Must outlive the session. Not thread-safe.
class CountedMemory {
 public:
  CountedMemory() : functions_{this, Malloc, Free, Calloc, Realloc} {}
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  nghttp2_mem* functions() { return &functions_; }
  // Bytes that the session holds, as malloc rounds them.
  size_t bytes() const { return bytes_; }
  // The most bytes that it has held.
  size_t peak_bytes() const { return peak_bytes_; }

 private:
  static CountedMemory& Of(void* user) { return *static_cast<CountedMemory*>(user); }
  static void* Malloc(size_t size, void* user) { return Of(user).Count(std::malloc(size)); }
  static void* Calloc(size_t count, size_t size, void* user) {
    return Of(user).Count(std::calloc(count, size));
  }
  static void Free(void* memory, void* user) {
    Of(user).bytes_ -= malloc_usable_size(memory);
    std::free(memory);
  }
  static void* Realloc(void* memory, size_t size, void* user) {
    const size_t before = malloc_usable_size(memory);
    void* const moved = std::realloc(memory, size);
    if (moved == nullptr) return nullptr;
    Of(user).bytes_ -= before;
    return Of(user).Count(moved);
  }
  void* Count(void* memory) {
    bytes_ += malloc_usable_size(memory);  // 0 for null
    peak_bytes_ = std::max(peak_bytes_, bytes_);
    return memory;
  }

  nghttp2_mem functions_;
  size_t bytes_ = 0;
  size_t peak_bytes_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_COUNTED_MEMORY_H_
