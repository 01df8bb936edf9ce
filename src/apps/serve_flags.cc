#include "apps/serve_flags.h"

#include <chrono>

#include "apps/served_model.h"

namespace deepinfer {
namespace {

constexpr double kMaxSeconds = 7 * 24 * 3600;

void AddSeconds(OptionSet& options, const char* flag, const char* help, double* value) {
  options.Add({.flag = flag, .help = help, .unit = "seconds", .min = 0.01, .max = kMaxSeconds},
              value);
}

void AddLimits(OptionSet& options, ServeFlags& flags) {
  options.Add({.flag = "max-connections",
               .help = "open connections; more are told 503",
               .min = 1,
               .max = 1 << 20},
              &flags.http.max_connections);
  options.Add({.flag = "max-body-mib",
               .help = "largest request; larger ones are told 413",
               .unit = "MiB",
               .min = 0.001,
               .max = 256},
              &flags.max_body_mib);
  options.Add({.flag = "max-all-bodies-mib",
               .help = "requests held at once before their prompts are made; more are told 503",
               .unit = "MiB",
               .min = 0.001,
               .max = 1 << 20},
              &flags.max_all_bodies_mib);
  options.Add({.flag = "stream-buffer-kib",
               .help = "how much of a stream its client may leave unread before it is cut off",
               .unit = "KiB",
               .min = 1,
               .max = 1 << 20},
              &flags.stream_buffer_kib);
  options.Add({.flag = "max-concurrent-per-key",
               .help = "requests of one tenant under way; more are told 429. 0: any number",
               .min = 0},
              &flags.limits.max_running);
  options.Add({.flag = "max-queued-per-key",
               .help = "of them, not started yet; more are told 429. 0: any number",
               .min = 0},
              &flags.limits.max_waiting);
}

void AddTimes(OptionSet& options, ServeFlags& flags) {
  AddSeconds(options, "queue-timeout", "a request that has not started by then is told 503",
             &flags.queue_timeout_s);
  AddSeconds(options, "drain-timeout",
             "after SIGTERM or Ctrl-C: how long running requests may go on; a second signal ends "
             "them at once",
             &flags.drain_timeout_s);
  AddSeconds(options, "stall-timeout",
             "requests run, but no step ended for so long: /ready says 503 and waiting requests "
             "fail. Longer than the slowest step",
             &flags.stall_timeout_s);
  AddSeconds(options, "keep-alive-period", "silence before a stream gets a comment",
             &flags.keep_alive_s);
  AddSeconds(options, "idle-timeout", "between two requests of a connection",
             &flags.idle_timeout_s);
  AddSeconds(options, "read-timeout", "for the body of a request; a sixth of it for its headers",
             &flags.read_timeout_s);
  AddSeconds(options, "write-timeout", "in which a client that is sent something takes some of it",
             &flags.write_timeout_s);
}

}  // namespace

void ServeFlags::AddTo(OptionSet& options) {
  options.Add({.flag = "host",
               .help = "name or address to listen at; 0.0.0.0 and :: are all of this machine's"},
              &http.host);
  options.Add({.flag = "port", .help = "0: one that is free", .min = 0, .max = 65535}, &http.port);
  options.Add({.flag = "api-key",
               .help = "a key that clients may use, and the tenant it belongs to; may be given "
                       "several times. None: any key or none is accepted",
               .unit = "KEY[=TENANT]"},
              &api_keys);
  options.Add({.flag = "api-keys",
               .help = "the same from a file, a line a key; # begins a comment",
               .unit = "FILE"},
              &api_keys_file);
  options.Add({.flag = "served-model-name",
               .help = "a name that requests may use; may be given several times, the first is the "
                       "default. None: deepseek-flash and the checkpoint's own"},
              &served_names);
  options.Add(
      {.flag = "default-thinking",
       .help = "where a request says nothing: on (high), off, low, high, max or 1..100. Not "
               "given: as the checkpoint's generation_config.json says, else on"},
      &default_thinking);
  options.Add({.flag = "cors-origin",
               .help = "a web page's origin that may use this server from browsers, or *; may be "
                       "given several times"},
              &cors_origins);
  AddLimits(options, *this);
  AddTimes(options, *this);
  options.Add({.flag = "log-format", .help = "form of log lines", .choices = {"text", "json"}},
              &log_format);
  options.Add({.flag = "access-log", .help = "one log line a request, without its text"},
              &access_log);
  options.Add({.flag = "deepseek-api",
               .help = "the hosted API's own rules where they differ (docs/api.md)"},
              &deepseek_api);
  options.Add({.flag = "scripted", .help = "for tests: requests may force tokens and drafts"},
              &scripted);
  options.Add({.flag = "scripted-pass-ms",
               .help = "for tests: a pass of the model takes at least so long",
               .unit = "ms",
               .min = 0,
               .max = 10'000},
              &scripted_pass_ms);
  options.Add({.flag = "scripted-engine",
               .help = "for measurements: answers are made up at this rate. 0: the engine answers",
               .unit = "tokens/s",
               .min = 0,
               .max = 1e6},
              &paced_tokens_per_s);
  engine.AddTo(options);
}

StatusOr<ServerOptions> ServeFlags::ToServerOptions(Disk& disk) const {
  ServerOptions options{
      .http = http, .limits = limits, .cors_origins = cors_origins, .access_log = access_log};
  options.http.max_body_bytes = static_cast<int64_t>(max_body_mib * (1 << 20));
  if (max_all_bodies_mib < max_body_mib) {
    return InvalidArgument("--max-all-bodies-mib: found ", max_all_bodies_mib,
                           ", expected at least --max-body-mib, ", max_body_mib);
  }
  options.http.max_all_bodies_bytes = static_cast<int64_t>(max_all_bodies_mib * (1 << 20));
  options.http.stream_buffer_bytes = stream_buffer_kib << 10;
  options.http.idle_timeout = FromSeconds(idle_timeout_s);
  options.http.body_timeout = FromSeconds(read_timeout_s);
  options.http.header_timeout = FromSeconds(read_timeout_s / 6);
  options.http.write_timeout = FromSeconds(write_timeout_s);
  options.stall_timeout = FromSeconds(stall_timeout_s);
  options.version = DI_VERSION;
  for (const std::string& key : api_keys) {
    DI_RETURN_IF_ERROR(Annotate(options.keys.Add(key), "--api-key"));
  }
  if (!api_keys_file.empty()) {
    DI_RETURN_IF_ERROR(Annotate(options.keys.AddFile(api_keys_file, disk), "--api-keys"));
    if (options.keys.empty()) {
      return InvalidArgument("--api-keys: ", api_keys_file, " holds no key");
    }
  }
  if (default_thinking) {
    const auto thinking = ParseThinking(*default_thinking);
    if (!thinking.ok()) return Annotate(thinking.status(), "--default-thinking (on, off, or)");
  }
  return options;
}

ApiOptions ServeFlags::ToApiOptions() const {
  return {.deepseek_api = deepseek_api,
          .scripted = scripted,
          .keep_alive = FromSeconds(keep_alive_s),
          .queue_timeout = FromSeconds(queue_timeout_s),
          .version = DI_VERSION};
}

}  // namespace deepinfer
