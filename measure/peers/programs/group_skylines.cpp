// The skyline of each group over sliding windows of event time, by WindFlow's Keyed_Windows: less is better.
//
//   group_skylines ROWS ANSWERS LENGTH SLIDE DELAY      times in microseconds; compiled with -DCRITERIA=4
//
// ROWS has records (time, group, criteria...) in the order of arrival, no row later than DELAY behind the newest time.
// Window w begins at w * SLIDE; times begin where window 0 does. ANSWERS gets records (window, group, criteria...), one
// for each row of a skyline. A window keeps its skyline, with which each of its rows is compared (block nested loops).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <windflow.hpp>

#include "records.hpp"

struct Row {
    uint64_t time;
    int64_t group;
    double criteria[CRITERIA];
};

struct Skyline {
    int64_t group = 0;
    uint64_t window = 0;
    std::vector<Row> rows;

    Skyline() = default;
    Skyline(int64_t of_group, uint64_t of_window) : group(of_group), window(of_window) {}
};

struct Answer {
    int64_t window, group;
    double criteria[CRITERIA];
};

// Whether a row is at least as good in all criteria, and better in one.
static bool dominates(const Row &row, const Row &other) {
    bool better = false;
    for (int at = 0; at < CRITERIA; at++) {
        if (row.criteria[at] > other.criteria[at]) {
            return false;
        }
        better |= row.criteria[at] < other.criteria[at];
    }
    return better;
}

int main(int count, char **arguments) {
    if (count != 6) {
        std::cerr << "need ROWS ANSWERS LENGTH SLIDE DELAY" << std::endl;
        return 2;
    }
    const auto rows = read_records<Row>(arguments[1]);
    Writer answers(arguments[2]);
    const std::chrono::microseconds length(std::stoll(arguments[3])), slide(std::stoll(arguments[4]));
    const uint64_t delay = std::stoull(arguments[5]);

    auto send = [&rows, delay](wf::Source_Shipper<Row> &shipper) {
        uint64_t newest = 0;
        for (const Row &row : rows) {
            newest = std::max(newest, row.time);
            shipper.pushWithTimestamp(row, row.time);
            shipper.setNextWatermark(newest > delay ? newest - delay : 0);
        }
    };
    auto add = [](const Row &row, Skyline &skyline) {
        auto &kept = skyline.rows;
        for (size_t at = 0; at < kept.size(); at++) {
            if (dominates(kept[at], row)) {
                std::swap(kept[at], kept[at / 2]);  // rows that dominate many others move to the front
                return;
            }
        }
        kept.erase(std::remove_if(kept.begin(), kept.end(), [&row](const Row &one) { return dominates(row, one); }), kept.end());
        kept.push_back(row);
    };
    auto store = [&answers](std::optional<Skyline> &found) {
        if (!found) {
            return;
        }
        for (const Row &row : found->rows) {
            Answer answer{static_cast<int64_t>(found->window), found->group, {}};
            std::copy(row.criteria, row.criteria + CRITERIA, answer.criteria);
            answers.write(answer);
        }
    };

    wf::PipeGraph graph("group_skylines", wf::Execution_Mode_t::DEFAULT, wf::Time_Policy_t::EVENT_TIME);
    auto source = wf::Source_Builder(send).withOutputBatchSize(256).build();
    auto windows = wf::Keyed_Windows_Builder(add)
                       .withKeyBy([](const Row &row) -> int64_t { return row.group; })
                       .withTBWindows(length, slide)
                       .build();
    auto sink = wf::Sink_Builder(store).build();
    auto &pipe = graph.add_source(source);
    pipe.add(windows);
    pipe.add_sink(sink);
    graph.run();
    answers.close();
    return 0;
}
