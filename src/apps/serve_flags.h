// apps/serve_flags.h: the flags of `serve`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/engine_flags.h"
#include "apps/options.h"
#include "base/status.h"
#include "request/api.h"
#include "request/server.h"

namespace deepinfer {

struct ServeFlags {
  EngineFlags engine;
  HttpServerOptions http;
  TenantLimitOptions limits;
  std::vector<std::string> api_keys, served_names, cors_origins;
  std::string api_keys_file, log_format = "text";
  std::optional<std::string> default_thinking;
  double max_body_mib = 32, max_all_bodies_mib = 256;
  int64_t stream_buffer_kib = 1024;
  double queue_timeout_s = 600, drain_timeout_s = 60, stall_timeout_s = 10, keep_alive_s = 15;
  double idle_timeout_s = 75, read_timeout_s = 120, write_timeout_s = 30;
  double paced_tokens_per_s = 0;  // 0: the engine answers
  double scripted_pass_ms = 0;
  bool access_log = true, deepseek_api = false, scripted = false;

  void AddTo(OptionSet& options);
  // Errors: kInvalidArgument naming the flag.
  StatusOr<ServerOptions> ToServerOptions(Disk& disk) const;
  ApiOptions ToApiOptions() const;
};

}  // namespace deepinfer
