// Receives the answers of kernel services: a gRPC completion queue and the one thread that empties
// it.
//
// Guarantees: OnAnswer is called on the queue's own thread, exactly once for each call that was
//             begun with the queue, whatever its result.
// Thread-safety: calls may be begun from any thread.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_ANSWER_QUEUE_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_ANSWER_QUEUE_H_

#include <thread>

#include "grpcpp/completion_queue.h"

namespace phimap {

class AnswerQueue {
 public:
  // A call that waits for its answer. Its address is the call's tag.
  class Waiting {
   public:
    // Called when the call has ended. Must not block, because it would delay all answers of all
    // services. May begin another call.
    virtual void OnAnswer() = 0;

   protected:
    ~Waiting() = default;
  };

  AnswerQueue();
  // REQUIRES: every call has ended.
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  // Returns the completion queue, for calls whose tag is a Waiting*.
  grpc::CompletionQueue* get() { return &answers_; }

 private:
  void Run();

  grpc::CompletionQueue answers_;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_ANSWER_QUEUE_H_
