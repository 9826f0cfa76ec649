#include "tests/server/rpc/parse_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace {

thread_local int64_t held = 0;
thread_local int64_t peak = 0;

// Each block is preceded by a header with the requested size. malloc_usable_size() would not do,
// because its result depends on the gaps in the heap.
constexpr size_t kHeaderBytes = 16;

int64_t BlockBytes(size_t bytes) { return std::max<int64_t>(32, (bytes + 8 + 15) / 16 * 16); }

void* Counted(size_t bytes) noexcept {
  char* const header = static_cast<char*>(std::malloc(kHeaderBytes + bytes));
  if (header == nullptr) return nullptr;
  std::memcpy(header, &bytes, sizeof(bytes));
  held += BlockBytes(bytes);
  peak = std::max(peak, held);
  return header + kHeaderBytes;
}

void Release(void* block) noexcept {
  if (block == nullptr) return;
  char* const header = static_cast<char*>(block) - kHeaderBytes;
  size_t bytes = 0;
  std::memcpy(&bytes, header, sizeof(bytes));
  held -= BlockBytes(bytes);
  std::free(header);
}

}  // namespace

void* operator new(size_t bytes) {
  void* const block = Counted(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
// All forms of new and delete are replaced, because a sanitizer's own versions would not know about
// the header.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return Counted(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return Counted(bytes); }
void operator delete(void* block) noexcept { Release(block); }
void operator delete[](void* block) noexcept { Release(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { Release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { Release(block); }
void operator delete(void* block, size_t) noexcept { Release(block); }
void operator delete[](void* block, size_t) noexcept { Release(block); }

namespace phimap::testing {

int64_t HeldBytes() { return held; }
int64_t PeakBytes() { return peak; }
void ResetPeakBytes() { peak = held; }

ParseMemory MemoryOfParse(const google::protobuf::Message& prototype, absl::string_view bytes) {
  const int64_t before = held;
  ResetPeakBytes();
  const std::unique_ptr<google::protobuf::Message> message(prototype.New());
  ParseMemory memory;
  memory.parsed = message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  memory.peak = peak - before;
  memory.kept = held - before;
  return memory;
}

}  // namespace phimap::testing
