// The page for people: the files of server/http/page, which are part of the program, and how they
// are sent. The page calls the API as any other client over HTTP does, by the calls that read,
// transform and predict; so the files hold nothing secret, and who has no token gets them too.
//
// The page shows names that strangers chose, next to a token that a reader typed. So its headers
// let the browser run only these files, and talk only to this server: no script, style, picture or
// frame comes from elsewhere or stands in the text of the document itself.
#ifndef PHIMAP_SERVER_HTTP_PAGE_FILES_H_
#define PHIMAP_SERVER_HTTP_PAGE_FILES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

class PageFiles {
 public:
  // Sets the address of gRPC, HOST:PORT or unix:PATH, whose port the page names to its readers.
  // Call before requests come.
  void SetGrpcAddress(absl::string_view address);

  // Whether the request is for the page: a GET or HEAD of "/" or of a file that exists in "/page/".
  static bool Serves(const RequestHead& head);

  // Whether a browser says that the request opens the page itself, as a document of its own: by a
  // link, wherever it stands. See HttpDoor.
  static bool IsOpened(const RequestHead& head);

  // Answers the request. REQUIRES: Serves(head).
  void Answer(Stream& stream, const RequestHead& head) const;

 private:
  // JSON about this server, which the page reads at /page/server.json.
  std::string server_ = "{}\n";
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_PAGE_FILES_H_
