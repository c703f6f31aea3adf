#include "core/comm/job/job_server.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/comm/job/control.h"
#include "core/comm/job/store_table.h"
#include "core/comm/job/tcp_store.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

constexpr JobToken kToken = {1, 2, 3};

std::unique_ptr<JobServer> StartServer(int size, milliseconds limit = milliseconds(5000)) {
  auto server = JobServer::Start({{"127.0.0.1", 0}, kToken, size, limit, {}});
  EXPECT_TRUE(server.ok()) << server.status().message();
  return *std::move(server);
}

JoinOptions JoinAs(const JobServer& server, uint32_t rank, uint32_t size) {
  JoinOptions options;
  options.server = server.address();
  options.token = kToken;
  options.hello = {Purpose::kStore, rank, size, 1000 + rank, "h"};
  return options;
}

std::unique_ptr<Control> JoinControl(const JobServer& server, uint32_t rank, uint32_t size) {
  auto control =
      Control::Join({JoinAs(server, rank, size), "rank 0", {}}, LimitOf(milliseconds(5000)));
  EXPECT_TRUE(control.ok()) << control.status().message();
  return *std::move(control);
}

// The error that ends the job on this rank, waited for at most 5 s.
std::string AwaitAbort(const Control& control) {
  const WaitLimit limit = LimitOf(milliseconds(5000));
  while (control.status().ok() && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
  return control.status().message();
}

TEST(TcpStore, ValuesAreSharedAndWrittenOnce) {
  const auto server = StartServer(2);
  TcpStore a(JoinAs(*server, 0, 2)), b(JoinAs(*server, 1, 2));
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_TRUE(a.Set("key", std::string(100'000, 'x')).ok());
  });
  const auto value = b.Get("key", LimitOf(milliseconds(5000)));
  late.join();
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(*value, std::string(100'000, 'x'));
  EXPECT_EQ(b.Set("key", "y").message(),
            "store: key 'key' exists; a key is written once, so use another name");
  EXPECT_EQ(a.Set("big", std::string(kMaxValueBytes + 1, 'x')).code(), Code::kLimitExceeded);
}

TEST(TcpStore, WaitsEndWithTheLimitOrCancellation) {
  const auto server = StartServer(1);
  TcpStore store(JoinAs(*server, 0, 1));
  auto value = store.Get("none", LimitOf(milliseconds(20)));
  EXPECT_EQ(value.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(value.status().message(), "store: key 'none': no rank has written it in time");
  std::atomic<bool> cancelled{true};
  WaitLimit limit;
  limit.cancelled = &cancelled;
  EXPECT_EQ(store.Get("none", limit).status().code(), Code::kCancelled);
}

TEST(JobServer, WrongTokenIsRefused) {
  const auto server = StartServer(1);
  JoinOptions options = JoinAs(*server, 0, 1);
  options.token[5] = 1;
  const Status refused = JoinServer(options, LimitOf(milliseconds(5000))).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_NE(refused.message().find("start all ranks with the same MSRT_TOKEN"), std::string::npos)
      << refused.message();
}

TEST(JobServer, FailureOfOneRankReachesTheOthers) {
  const auto server = StartServer(3);
  const auto zero = JoinControl(*server, 0, 3), two = JoinControl(*server, 2, 3);
  auto one = JoinControl(*server, 1, 3);
  TcpStore store(JoinAs(*server, 0, 3));
  zero->OnAbort([&](const Status& reason) { store.Abort(reason); });
  const auto slot = one->progress().Open("world", 1);
  slot->Enter(CommKind::kAllGather, 12, 64);
  std::thread failing([&] { one->Fail(IoError("file 'x' cannot be read")); });
  // A wait on the store ends, too.
  const auto value = store.Get("none", LimitOf(milliseconds(5000)));
  failing.join();
  const std::string expected =
      "rank 1 on host 'h' (process 1001) failed: file 'x' cannot be read, last seen in AllGather "
      "#12 of group 'world'. Of the others, rank 0 is before its first operation; rank 2 is before "
      "its first operation";
  EXPECT_EQ(AwaitAbort(*zero), expected);
  EXPECT_EQ(AwaitAbort(*two), expected);
  EXPECT_EQ(AwaitAbort(*one), expected);
  EXPECT_FALSE(value.ok());
  EXPECT_NE(value.status().code(), Code::kDeadlineExceeded) << value.status().message();
}

TEST(JobServer, LossOfTheServerReachesTheRanks) {
  auto server = StartServer(1);
  const auto control = JoinControl(*server, 0, 1);
  const auto slot = control->progress().Open("world", 1);
  slot->Enter(CommKind::kBarrier, 3, 0);
  server.reset();
  const std::string message = AwaitAbort(*control);
  EXPECT_NE(message.find("its connection was closed; this rank is in Barrier #3 of group 'world'"),
            std::string::npos)
      << message;
}

TEST(JobServer, DivergenceOfTwoRanksIsFound) {
  const auto server = StartServer(2);
  const auto zero = JoinControl(*server, 0, 2), one = JoinControl(*server, 1, 2);
  const auto a = zero->progress().Open("world", 1), b = one->progress().Open("world", 1);
  a->Enter(CommKind::kAllReduce, 4, 8);
  b->Enter(CommKind::kBarrier, 4, 0);
  for (const Control* control : {zero.get(), one.get()}) {
    const std::string message = AwaitAbort(*control);
    EXPECT_TRUE(message.starts_with(
        "rank 1 on host 'h' (process 1001) calls Barrier #4 of group 'world' with 0 bytes while "
        "rank 0 calls AllReduce #4 of group 'world' with 8 bytes: all ranks"))
        << message;
  }
}

std::string Noise(std::mt19937* random) {
  std::string noise((*random)() % 300, '\0');
  for (char& byte : noise) byte = static_cast<char>((*random)());
  // Short lengths are more likely to be read as messages.
  if ((*random)() % 2 == 0 && noise.size() > 5) noise[1] = noise[2] = noise[3] = 0;
  return noise;
}

TEST(JobServer, StrangersDoNotDisturbTheRanks) {
  const auto server = StartServer(1);
  const auto control = JoinControl(*server, 0, 1);
  std::mt19937 random(1);
  std::vector<Socket> silent;
  for (int i = 0; i < 400; ++i) {
    auto socket = Connect(server->address(), false, LimitOf(milliseconds(5000)));
    ASSERT_TRUE(socket.ok()) << socket.status().message();
    if (i % 2 == 0) silent.push_back(*std::move(socket));
    else (void)socket->Send(Noise(&random), LimitOf(milliseconds(1000)));
  }
  TcpStore store(JoinAs(*server, 0, 1));
  EXPECT_TRUE(store.Set("key", "value").ok());
  const auto value = store.Get("key", LimitOf(milliseconds(5000)));
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(*value, "value");
  EXPECT_TRUE(control->status().ok());
}

// Connections succeed, because the system accepts them, but no one answers.
TEST(TcpStore, SetEndsAtItsLimit) {
  const auto silent = Listener::Open({"127.0.0.1", 0});
  ASSERT_TRUE(silent.ok());
  JoinOptions options;
  options.server = silent->address();
  options.token = kToken;
  TcpStore store(options);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(store.Set("key", "value", LimitOf(milliseconds(50))).code(), Code::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1000));
}

// A rank with the token may send anything, and may end the job by it; the server still answers.
TEST(JobServer, SurvivesNoiseFromRanks) {
  const auto server = StartServer(2);
  std::mt19937 random(2);
  const std::string token(reinterpret_cast<const char*>(kToken.data()), kToken.size());
  for (int i = 0; i < 400; ++i) {
    auto socket = Connect(server->address(), false, LimitOf(milliseconds(5000)));
    ASSERT_TRUE(socket.ok()) << socket.status().message();
    std::string bytes = token;
    const Purpose purpose = i % 8 < 4 ? Purpose::kStore : Purpose::kControl;
    if (i % 4 != 0) bytes += HelloMessage({purpose, 1, 2, 1, "h"});
    (void)socket->Send(bytes + Noise(&random), LimitOf(milliseconds(1000)));
  }
  const Status joined = JoinServer(JoinAs(*server, 0, 2), LimitOf(milliseconds(5000))).status();
  EXPECT_TRUE(joined.ok() ||
              joined.message().find("the job was aborted: rank 1") != std::string::npos)
      << joined.message();
}

TEST(JobServer, PortInUseIsNamed) {
  const auto server = StartServer(1);
  const auto second = JobServer::Start({server->address(), kToken, 1, milliseconds(1000), {}});
  EXPECT_EQ(
      second.status().message(),
      StrCat("cannot listen at ", server->address(),
             ": Address already in use; choose another port, or end the process that uses it"));
}

}  // namespace
}  // namespace msrt
