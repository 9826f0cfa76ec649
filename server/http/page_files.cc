#include "server/http/page_files.h"

#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace phimap {
namespace {

// A file of the page, as embed_page.cmake writes it.
struct EmbeddedFile {
  absl::string_view path;
  absl::string_view bytes;
  // These bytes as gzip has them.
  absl::string_view gzip;
  // SHA-256 of the bytes.
  absl::string_view digest;
};

// Defines kPageFiles.
#include "server/http/page_files.inc"

constexpr absl::string_view kServerPath = "/page/server.json";

// What the browser may do with the page. A file of the page is no use to other sites either.
constexpr Header kGuards[] = {
    {"content-security-policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"x-content-type-options", "nosniff"},
    {"x-frame-options", "DENY"},
    {"referrer-policy", "no-referrer"},
    {"cross-origin-opener-policy", "same-origin"},
    {"cross-origin-resource-policy", "same-origin"},
};

class StaticBytes final : public OutputBytes {
 public:
  explicit StaticBytes(absl::string_view bytes) : bytes_(bytes) {}
  absl::string_view bytes() const override { return bytes_; }

 private:
  const absl::string_view bytes_;
};

absl::string_view PathOf(const RequestHead& head) {
  const absl::string_view target = head.Find(":path");
  return target.substr(0, target.find('?'));
}

const EmbeddedFile* FindFile(absl::string_view path) {
  if (path == "/") path = "/page/index.html";
  for (const EmbeddedFile& file : kPageFiles) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

absl::string_view TypeOf(absl::string_view path) {
  if (absl::EndsWith(path, ".html")) return "text/html; charset=utf-8";
  if (absl::EndsWith(path, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(path, ".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

// Whether a header that lists values, as `accept-encoding: br, gzip;q=0.8`, has this one.
bool Lists(absl::string_view header, absl::string_view value) {
  for (const absl::string_view part : absl::StrSplit(header, ',')) {
    const std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(part, absl::MaxSplits(';', 1));
    double weight = 1;
    absl::string_view parameter = absl::StripAsciiWhitespace(word.second);
    if (absl::ConsumePrefix(&parameter, "q=") && !absl::SimpleAtod(parameter, &weight)) weight = 0;
    if (absl::StripAsciiWhitespace(word.first) == value && weight > 0) return true;
  }
  return false;
}

}  // namespace

void PageFiles::SetGrpcAddress(absl::string_view address) {
  // The host is one by which a server listens, such as 0.0.0.0, and a path means nothing to readers
  // on other machines. The page puts the port behind the name by which it was reached itself.
  uint32_t port = 0;
  const bool has_port = !absl::StartsWith(address, "unix:") &&
                        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port);
  if (has_port) server_ = absl::StrCat("{\"grpc_port\": ", port, "}\n");
}

bool PageFiles::Serves(const RequestHead& head) {
  const absl::string_view method = head.Find(":method");
  if (method != "GET" && method != "HEAD") return false;
  return PathOf(head) == kServerPath || FindFile(PathOf(head)) != nullptr;
}

bool PageFiles::IsOpened(const RequestHead& head) {
  return Serves(head) && PathOf(head) == "/" && head.Find("sec-fetch-mode") == "navigate" &&
         head.Find("sec-fetch-dest") == "document";
}

void PageFiles::Answer(Stream& stream, const RequestHead& head) const {
  absl::InlinedVector<Header, 16> headers = {{":status", "200"}};
  headers.insert(headers.end(), std::begin(kGuards), std::end(kGuards));
  const EmbeddedFile* const file = FindFile(PathOf(head));
  absl::string_view bytes = server_;
  std::string etag;
  if (file == nullptr) {
    headers.push_back({"content-type", "application/json"});
    headers.push_back({"cache-control", "no-store"});
  } else {
    const bool zipped = Lists(head.Find("accept-encoding"), "gzip");
    bytes = zipped ? file->gzip : file->bytes;
    etag = absl::StrCat("\"", file->digest, zipped ? "-gzip\"" : "\"");
    headers.push_back({"content-type", TypeOf(file->path)});
    // Asked for each time, so that a page and its modules are always of one program.
    headers.push_back({"cache-control", "no-cache"});
    headers.push_back({"etag", etag});
    headers.push_back({"vary", "accept-encoding"});
    if (Lists(head.Find("if-none-match"), etag)) {
      headers[0].value = "304";
      return stream.SendHeaders(headers, /*end=*/true);
    }
    if (zipped) headers.push_back({"content-encoding", "gzip"});
  }
  const std::string length = absl::StrCat(bytes.size());
  headers.push_back({"content-length", length});
  const bool is_head = head.Find(":method") == "HEAD";
  stream.SendHeaders(headers, /*end=*/is_head);
  if (is_head) return;
  stream.Send(std::make_shared<StaticBytes>(bytes));
  stream.SendTrailers({});
}

}  // namespace phimap
