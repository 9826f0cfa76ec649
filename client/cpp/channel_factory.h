// Creates channels to one server, or to several equivalent servers, with TLS and credentials.
#ifndef PHIMAP_CLIENT_CPP_CHANNEL_FACTORY_H_
#define PHIMAP_CLIENT_CPP_CHANNEL_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/client.h"

namespace grpc {
class Channel;
class ChannelCredentials;
}  // namespace grpc

namespace phimap::client {

// Thread-safe. Channels may outlive the factory.
class ChannelFactory {
 public:
  // Creates a factory, and reads the files of options.tls. Returns INVALID_ARGUMENT for one of
  // these reasons:
  // - The target or the token is malformed.
  // - A file cannot be read.
  // - A client certificate comes without its key or without `ca_file`.
  // - The token would be sent unencrypted to another machine.
  static absl::StatusOr<ChannelFactory> Create(absl::string_view target,
                                               const ConnectOptions& options);

  // Returns a channel with its own connection, which is opened on first use.
  std::shared_ptr<grpc::Channel> Make() const;

 private:
  ChannelFactory(std::string target, std::string token, std::string server_name,
                 std::shared_ptr<grpc::ChannelCredentials> credentials);

  std::string target_;
  std::string token_;
  std::string server_name_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
};

// Returns true if calls to `target` stay on this machine: it is a unix: path, or all its addresses
// are localhost or loopback addresses.
bool StaysOnThisMachine(absl::string_view target);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_CHANNEL_FACTORY_H_
