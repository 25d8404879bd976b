// Serves models to several clients at a time, and survives what they send.
//
//   serve_models [OPTION…] NAME=MODEL…
//
//   --port N              of 127.0.0.1; 0, the default: any that is free, which is printed
//   --clients N           served at a time (4); others wait
//   --threads N           that all runs of all models share (as many as the machine has)
//   --deadline-ms N       for each request (1000)
//   --memory-limit-mb N   for each request (256)
//
// A request is a line: the model's name and its inputs as JSON, with tabs between. So is the
// answer:
//
//   digits\timage=[[[[0, …]]]]          ok\tprobabilities=[[0.01, …]]
//                                       error\tbad input\tinput 'image': …
//
// SIGINT and SIGTERM end it: requests that are running are cancelled, and answered so.
#include <sardonyx/inputs.h>
#include <sardonyx/session.h>
#include <sardonyx/text.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "connection.h"

namespace {

using namespace sardonyx;

struct Options {
  int64_t port = 0, clients = 4, threads = 0, deadline_ms = 1000, memory_limit_mb = 256;
  std::vector<std::pair<std::string, std::string>> models;  // names and files
};

constexpr int64_t largest_answer = 1 << 20;  // elements of a value

// --- requests ---------------------------------------------------------------------------------

// All models of the server. Sessions may be run by any number of threads at the same time, and all
// of them share the threads that compute, so that many requests do not make many threads.
class Models {
 public:
  explicit Models(const Options& options)
      : deadline_(options.deadline_ms), memory_limit_(options.memory_limit_mb << 20) {
    const Threads threads(static_cast<int>(options.threads));
    for (const auto& [name, file] : options.models) {
      if (sessions_.contains(name))
        throw Error(ErrorCode::bad_input, "two models have the name '" + name + "'");
      sessions_.emplace(name, Session(file, {.shared_threads = threads, .prepack = true}));
    }
  }

  // Has runs that are going on, and those that come, end with Error (cancelled).
  void cancel() { cancel_ = true; }

  // Never throws: whatever is wrong with a request is its answer.
  std::string answer(std::string_view request) const try {
    return "ok" + run(request) + '\n';
  } catch (const Error& error) {
    return "error\t" + std::string(name_of(error.code())) + '\t' + printable(error.what()) + '\n';
  } catch (const std::exception& error) {
    return std::string("error\tinternal\t") + printable(error.what()) + '\n';
  }

 private:
  std::string run(std::string_view request) const {
    const Session& session = named(next_word(request));
    std::vector<NamedValue> inputs;
    while (!request.empty()) inputs.push_back(input_of(session, next_word(request)));

    RunOptions options;
    options.cancel = &cancel_;
    options.deadline = std::chrono::steady_clock::now() + deadline_;
    options.memory_limit = memory_limit_;
    const std::vector<Value> outputs = session.run(inputs, options);

    std::string text;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (element_count(outputs[i]) > largest_answer)
        throw Error(ErrorCode::out_of_memory,
                    "output '" + session.outputs()[i].name + "' has too many elements to be sent");
      // A name may hold what ends a word or a line.
      text += '\t' + printable(session.outputs()[i].name) + '=' + to_json(outputs[i]);
    }
    return text;
  }

  const Session& named(std::string_view name) const {
    if (const auto found = sessions_.find(name); found != sessions_.end()) return found->second;
    throw Error(ErrorCode::bad_input, "there is no model '" + std::string(name) + "'");
  }

  static NamedValue input_of(const Session& session, std::string_view word) {
    const size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    for (const ValueDescription& input : session.inputs()) {
      if (equals != std::string_view::npos && input.name == name)
        return {name, value_from_text(word.substr(equals + 1), input)};
    }
    throw Error(ErrorCode::bad_input,
                "an input is NAME=JSON; the model has none named '" + name + "'");
  }

  static std::string_view next_word(std::string_view& rest) {
    const size_t end = std::min(rest.find('\t'), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
  }

  std::map<std::string, Session, std::less<>> sessions_;
  const std::chrono::milliseconds deadline_;
  const int64_t memory_limit_;
  std::atomic<bool> cancel_{false};
};

// --- the server -------------------------------------------------------------------------------

// What each thread does until it is stopped: takes a client and answers it, line by line.
void serve(const Models& models, const example::Listener& listener, const example::Stop& stop) {
  while (auto client = listener.accept(stop)) {
    example::Connection connection(std::move(*client), stop);
    std::string line;
    for (;;) {
      const auto found = connection.read(line);
      if (found == example::Connection::Read::too_long)
        connection.write("error\tbad input\tthe line is too long\n");
      if (found != example::Connection::Read::line) break;
      if (!connection.write(models.answer(line))) break;
    }
  }
}

void run(const Options& options) {
  // All threads leave these signals to this one, which waits for them below.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  Models models(options);
  const example::Listener listener(static_cast<uint16_t>(options.port));
  example::Stop stop;
  std::vector<std::thread> threads;
  try {
    for (int64_t i = 0; i < options.clients; ++i)
      threads.emplace_back([&] { serve(models, listener, stop); });
  } catch (const std::system_error&) {  // the system gives no more: fewer clients at a time
    if (threads.empty()) throw;
  }
  std::cout << "listening on 127.0.0.1:" << listener.port() << std::endl;

  int received = 0;
  sigwait(&signals, &received);
  models.cancel();
  stop.stop();
  for (std::thread& thread : threads) thread.join();
  std::cout << "stopped" << std::endl;
}

// --- the command line -------------------------------------------------------------------------

int64_t number(const std::string& option, const char* text, int64_t low, int64_t high) {
  int64_t value = 0;
  const char* const end = text + std::char_traits<char>::length(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stopped != end || value < low || value > high)
    throw Error(ErrorCode::bad_input, option + " takes a number from " + std::to_string(low) +
                                          " to " + std::to_string(high) + ", not '" + text + "'");
  return value;
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool has_next = i + 1 < count;
    if (word == "--port" && has_next)
      options.port = number(word, words[++i], 0, 65535);
    else if (word == "--clients" && has_next)
      options.clients = number(word, words[++i], 1, 1024);
    else if (word == "--threads" && has_next)
      options.threads = number(word, words[++i], 1, 4096);
    else if (word == "--deadline-ms" && has_next)
      options.deadline_ms = number(word, words[++i], 1, 3600000);
    else if (word == "--memory-limit-mb" && has_next)
      options.memory_limit_mb = number(word, words[++i], 1, 1 << 20);
    else if (const size_t equals = word.find('=');
             equals != std::string::npos && !word.starts_with('-'))
      options.models.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    else
      throw Error(ErrorCode::bad_input, "'" + word + "' is no option and no NAME=MODEL");
  }
  if (options.models.empty())
    throw Error(ErrorCode::bad_input, "usage: serve_models [OPTION…] NAME=MODEL…");
  return options;
}

}  // namespace

int main(int count, char** words) try {
  run(parse(count, words));
} catch (const std::exception& error) {
  return std::cerr << "error: " << error.what() << '\n', 1;
}
