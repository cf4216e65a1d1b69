// Count, sum and maximum of each key over sliding windows of event time, by WindFlow's Ffat_Windows.
//
//   keyed_windows ROWS ANSWERS LENGTH SLIDE DELAY      times in microseconds
//
// ROWS has records (time, key, value) in the order of arrival, no row later than DELAY behind the newest time. Window w
// begins at w * SLIDE; times begin where window 0 does. ANSWERS gets records (window, key, count, sum, maximum).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <windflow.hpp>

#include "records.hpp"

struct Row {
    uint64_t time;
    int64_t key;
    double value;
};

struct Value {
    int64_t key;
    double value;
};

// What WindFlow combines: a window's count, sum and maximum; without rows, the neutral element.
struct Sums {
    int64_t key = 0;
    uint64_t window = 0;
    int64_t count = 0;
    double sum = 0.0;
    double most = -std::numeric_limits<double>::infinity();

    Sums() = default;
    Sums(int64_t of_key, uint64_t of_window) : key(of_key), window(of_window) {}
};

struct Answer {
    int64_t window, key, count;
    double sum, most;
};

int main(int count, char **arguments) {
    if (count != 6) {
        std::cerr << "need ROWS ANSWERS LENGTH SLIDE DELAY" << std::endl;
        return 2;
    }
    const auto rows = read_records<Row>(arguments[1]);
    Writer answers(arguments[2]);
    const std::chrono::microseconds length(std::stoll(arguments[3])), slide(std::stoll(arguments[4]));
    const uint64_t delay = std::stoull(arguments[5]);

    auto send = [&rows, delay](wf::Source_Shipper<Value> &shipper) {
        uint64_t newest = 0;
        for (const Row &row : rows) {
            newest = std::max(newest, row.time);
            shipper.pushWithTimestamp(Value{row.key, row.value}, row.time);
            shipper.setNextWatermark(newest > delay ? newest - delay : 0);
        }
    };
    auto lift = [](const Value &row, Sums &sums) {
        sums.count = 1;
        sums.sum = row.value;
        sums.most = row.value;
    };
    // WindFlow may pass one object as an argument and as the result.
    auto combine = [](const Sums &one, const Sums &other, Sums &both) {
        both.count = one.count + other.count;
        both.sum = one.sum + other.sum;
        both.most = std::max(one.most, other.most);
    };
    auto store = [&answers](std::optional<Sums> &found) {
        if (found && found->count > 0) {
            answers.write(Answer{static_cast<int64_t>(found->window), found->key, found->count, found->sum, found->most});
        }
    };

    wf::PipeGraph graph("keyed_windows", wf::Execution_Mode_t::DEFAULT, wf::Time_Policy_t::EVENT_TIME);
    auto source = wf::Source_Builder(send).withOutputBatchSize(256).build();
    auto windows = wf::Ffat_Windows_Builder(lift, combine)
                       .withKeyBy([](const Value &row) -> int64_t { return row.key; })
                       .withTBWindows(length, slide)
                       .withOutputBatchSize(256)
                       .build();
    auto sink = wf::Sink_Builder(store).build();
    auto &pipe = graph.add_source(source);
    pipe.add(windows);
    pipe.add_sink(sink);
    graph.run();
    answers.close();
    return 0;
}
