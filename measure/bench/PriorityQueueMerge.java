import java.util.PriorityQueue;
import java.util.SplittableRandom;

/** Merges sorted inputs by a priority queue of their heads; prints M tuples per second of the best of five rounds. */
public final class PriorityQueueMerge {
    public static void main(String[] arguments) {
        int inputs = Integer.parseInt(arguments[0]), each = Integer.parseInt(arguments[1]) / inputs;
        long[][] times = new long[inputs][each];
        SplittableRandom random = new SplittableRandom(inputs);
        for (long[] mine : times) {
            for (int at = 0; at < each; at++) mine[at] = random.nextLong(100L * each);
            java.util.Arrays.sort(mine);
        }
        double best = 0;
        for (int round = 0; round < 5; round++) {
            long begin = System.nanoTime();
            long[] merged = merge(times, each);
            double seconds = (System.nanoTime() - begin) / 1e9;
            for (int at = 1; at < merged.length; at++) if (merged[at] < merged[at - 1]) throw new AssertionError();
            best = Math.max(best, merged.length / seconds / 1e6);
        }
        System.out.printf(java.util.Locale.ROOT, "%.3f%n", best);
    }

    private record Head(long time, int input, int at) implements Comparable<Head> {
        @Override public int compareTo(Head other) {
            int order = Long.compare(time, other.time);
            return order != 0 ? order : Integer.compare(input, other.input);
        }
    }

    private static long[] merge(long[][] times, int each) {
        PriorityQueue<Head> heads = new PriorityQueue<>(times.length);
        for (int input = 0; input < times.length; input++) heads.add(new Head(times[input][0], input, 0));
        long[] merged = new long[times.length * each];
        for (int done = 0; done < merged.length; done++) {
            Head head = heads.poll();
            merged[done] = head.time();
            if (head.at() + 1 < each) heads.add(new Head(times[head.input()][head.at() + 1], head.input(), head.at() + 1));
        }
        return merged;
    }
}
