#include "client/files/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"

namespace phimap::cli {
namespace {

constexpr absl::string_view kGzipMagic("\x1f\x8b", 2);
constexpr absl::string_view kZstdMagic("\x28\xb5\x2f\xfd", 4);

class GzipDecompressor : public Decompressor {
 public:
  GzipDecompressor() {
    // 16 selects the header of gzip; 15 is the largest window of the format, 32 KiB.
    PHIMAP_CHECK(inflateInit2(&stream_, 16 + 15) == Z_OK);
  }
  ~GzipDecompressor() override { inflateEnd(&stream_); }

  absl::string_view name() const override { return "gzip"; }
  bool AtEnd() const override { return at_end_; }

  absl::StatusOr<Step> Decode(absl::string_view in, char* out, size_t capacity) override {
    if (at_end_) {
      if (in.empty()) return Step{};
      PHIMAP_CHECK(inflateReset(&stream_) == Z_OK);  // Starts the next member of a gzip file.
      at_end_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(capacity);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    // Z_BUF_ERROR: more input is needed, which is not an error.
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError(stream_.msg == nullptr ? "damaged" : stream_.msg);
    }
    at_end_ = result == Z_STREAM_END;
    return Step{in.size() - stream_.avail_in, capacity - stream_.avail_out};
  }

 private:
  z_stream stream_ = {};
  bool at_end_ = false;
};

class ZstdDecompressor : public Decompressor {
 public:
  ZstdDecompressor() : context_(ZSTD_createDCtx()) { PHIMAP_CHECK(context_ != nullptr); }
  ~ZstdDecompressor() override { ZSTD_freeDCtx(context_); }

  absl::string_view name() const override { return "zstd"; }
  bool AtEnd() const override { return at_end_; }

  absl::StatusOr<Step> Decode(absl::string_view in, char* out, size_t capacity) override {
    // Without input the library would begin a new frame.
    if (at_end_ && in.empty()) return Step{};
    ZSTD_inBuffer input = {in.data(), in.size(), 0};
    ZSTD_outBuffer output = {out, capacity, 0};
    const size_t result = ZSTD_decompressStream(context_, &output, &input);
    if (ZSTD_isError(result)) return absl::InvalidArgumentError(ZSTD_getErrorName(result));
    at_end_ = result == 0;
    return Step{input.pos, output.pos};
  }

 private:
  ZSTD_DCtx* const context_;
  bool at_end_ = false;
};

}  // namespace

std::unique_ptr<Decompressor> DecompressorFor(absl::string_view first_bytes) {
  if (absl::StartsWith(first_bytes, kGzipMagic)) return std::make_unique<GzipDecompressor>();
  if (absl::StartsWith(first_bytes, kZstdMagic)) return std::make_unique<ZstdDecompressor>();
  return nullptr;
}

bool MayBeCompressed(absl::string_view first_bytes) {
  return absl::StartsWith(kGzipMagic, first_bytes) || absl::StartsWith(kZstdMagic, first_bytes);
}

}  // namespace phimap::cli
