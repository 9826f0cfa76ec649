#include "server/kernel_client/answer_queue.h"

#include "core/thread/start_thread.h"

namespace phimap {

AnswerQueue::AnswerQueue()
    : thread_(StartThread("the answers of kernel services", [this] { Run(); })) {}

AnswerQueue::~AnswerQueue() {
  answers_.Shutdown();
  thread_.join();
}

void AnswerQueue::Run() {
  void* tag = nullptr;
  // Required by Next, but unused: the call's status says how the call ended.
  bool ok = false;
  while (answers_.Next(&tag, &ok)) static_cast<Waiting*>(tag)->OnAnswer();
}

}  // namespace phimap
