// base/transport.h: requests between processes, as an interface, so that tests decide what arrives.
//
// A call carries one frame to a peer and brings one frame or one failure back, exactly once.
// Frames' bodies are described in wire/ where they exist; a transport only moves them. Threads: one
// event loop per transport; handlers and answers run on it and must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace deepinfer {

struct Frame {
  uint8_t type = 0;
  uint16_t status = 0;           // of an answer; 0 = OK
  uint16_t lane = 0;             // calls of one lane to one peer arrive in order
  uint64_t session = 0;          // as agreed at the connection's start
  uint32_t map_epoch = 0;        // the sender's view of the placement map
  std::vector<uint8_t> body;     // small, parsed
  std::vector<uint8_t> payload;  // bulk bytes, moved beside the body
};

// kUnavailable: the peer cannot be reached or went away. kDeadlineExceeded: no answer in time; the
// peer may have done the work all the same.
using Answer = std::function<void(StatusOr<Frame>)>;

// A request and the time left for it. `answer` may be called later, at most once; not calling it
// lets the caller's deadline pass.
using Handler = std::function<void(Frame request, Duration budget, Answer answer)>;

class Transport {
 public:
  virtual ~Transport() = default;
  // Takes requests for `address` until the transport ends. Errors: kAlreadyExists.
  virtual Status Listen(const std::string& address, Handler handler) = 0;
  // Calls `answer` exactly once, never from inside Call().
  virtual void Call(const std::string& address, Frame request, MonotonicTime deadline,
                    Answer answer) = 0;
};

}  // namespace deepinfer
