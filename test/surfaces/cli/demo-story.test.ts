import { describe, expect, test } from "vitest";
import { formatRunId, Priority, type Event } from "../../../src/kernel/index.ts";
import { compareBooks } from "../../../src/surfaces/cli/demo/demo-ledger.ts";
import { storyLine, wrapped } from "../../../src/surfaces/cli/demo/demo-performance.ts";
import { DemoStory } from "../../../src/surfaces/cli/demo/demo-story.ts";
import { paintFor } from "../../../src/surfaces/cli/terminal/paint.ts";

const plain = { paint: paintFor(false, {}), width: 80 };

/** An event without the fields that all events of a test share. */
interface Draft {
  readonly type: Event["type"];
  readonly data: object;
  readonly task?: string;
  readonly agent?: string;
}

/** Returns the lines about events that are a second apart. */
function linesAbout(...events: readonly Draft[]): readonly string[] {
  const story = new DemoStory();
  return events.flatMap(({ task = "t0", agent = "lead", ...event }, seq) =>
    story
      .add({
        seq,
        runId: formatRunId("1"),
        taskId: task,
        agentId: agent,
        parentId: task === "t0" ? null : "t0",
        at: 1000 * (seq + 1),
        ...event,
      } as unknown as Event)
      .map((line) => storyLine(line, plain)),
  );
}

const hired = (childTaskId: string, agentId: string, priority: Priority = Priority.NORMAL): Draft => ({
  type: "spawn_start",
  data: { childTaskId, agentId, priority },
});
const call: Draft = { task: "t1", agent: "size", type: "message_start", data: { role: "assistant" } };

describe("DemoStory", () => {
  test("DemoStory describes the agents that one task hires in one line, once they work", () => {
    expect(linesAbout(hired("t1", "size", Priority.LOW), hired("t2", "build"))).toEqual([]);
    expect(linesAbout(hired("t1", "size", Priority.LOW), hired("t2", "build"), call)).toEqual([
      "  0:00  lead           hires size (LOW), build",
    ]);
  });

  test("DemoStory names the task that takes a seat, also if the task before it only waited", () => {
    const wanted: Draft = {
      type: "spawn_wait",
      data: { childTaskId: "t2", agentId: "licence", priority: Priority.HIGH, victim: "t1" },
    };
    const paused: Draft = { task: "t1", agent: "size", type: "seat_pause", data: { taskId: "t1" } };
    expect(linesAbout(hired("t1", "size"), call, wanted, paused).slice(1)).toEqual([
      "  0:02  lead           wants licence (HIGH); all seats are taken",
      "  0:03  size           gives its seat to licence",
    ]);
    expect(linesAbout(hired("t1", "size"), call, hired("t2", "licence", Priority.HIGH), paused).at(-1)).toBe(
      "  0:03  size           gives its seat to licence",
    );
  });

  test("DemoStory returns no line for an event that was added before", () => {
    const story = new DemoStory();
    const event = { seq: 0, runId: "run_1", taskId: "t0", agentId: "lead", parentId: null, at: 5 };
    const end = { ...event, type: "run_end", data: { status: "completed" } } as unknown as Event;
    expect([story.add(end).length, story.add(end).length, story.seq]).toEqual([1, 0, 0]);
  });

  test("DemoStory names the surviving worker and what a replay saved, only after a crash", () => {
    const story = new DemoStory();
    const event = { runId: "run_1", taskId: "t0", agentId: "lead", parentId: null, at: 0 };
    const recovered = (seq: number, data: object): Event =>
      ({ ...event, seq, type: "run_recover", data }) as unknown as Event;
    expect(story.add(recovered(0, { epoch: 2 }))).toEqual([]);
    const [killed] = story.kill({ worker: "worker-a", pid: 7, survivor: "worker-b" }, 0);
    expect(killed).toMatchObject({ who: "kill -9 7", text: "worker-a is gone", tone: "lost" });
    expect(story.add(recovered(1, { epoch: 3, recoveries: 1 }))).toEqual([
      {
        at: 0,
        who: "worker-b",
        text: "resumes: 0 steps replayed free, $0.000 not paid again",
        tone: "money",
      },
    ]);
  });
});

describe("storyLine()", () => {
  const line = { at: 61_000, who: "a-very-long-agent", text: "x".repeat(90), tone: "waits" } as const;

  test("storyLine cuts names and texts to the width of the terminal", () => {
    const shown = storyLine(line, plain);
    expect(shown).toHaveLength(80);
    expect(shown).toMatch(/^ {2}1:01 {2}a-very-long-… {2}x+…$/u);
    expect(storyLine(line, { ...plain, width: Number.POSITIVE_INFINITY })).toContain("x".repeat(90));
  });

  test("storyLine uses colours in a terminal, and no colours with NO_COLOR", () => {
    const coloured = storyLine(line, { paint: paintFor(true, {}), width: 80 });
    expect(coloured).toContain("\u{1b}[33m");
    expect(storyLine(line, { paint: paintFor(true, { NO_COLOR: "1" }), width: 80 })).toBe(
      storyLine(line, plain),
    );
  });

  test("storyLine shows control characters of agents as text", () => {
    expect(storyLine({ ...line, text: "\u{1b}[2J" }, plain)).toContain("\\u001b[2J");
  });

  test("wrapped() breaks a text at spaces", () => {
    expect(wrapped("one two three", 7)).toEqual(["one two", "three"]);
  });
});

describe("compareBooks()", () => {
  const sum = (calls: number, usd: number) => ({ calls, tokens: 10, usd });
  const asked = (digest: string) => ({ runId: "run_1", worker: "worker-a", agent: "lead", digest });
  const ledger = { answered: sum(2, 0.2), lost: sum(1, 0.1), total: sum(3, 0.3), chargedUsd: 0.3 };

  test.for([
    [
      "each answer was requested once and the call in flight twice",
      [asked("a"), asked("b"), asked("b")],
      ledger,
      true,
    ],
    ["the unreported call was reserved but not sent", [asked("a"), asked("b")], ledger, true],
    [
      "a recorded answer was requested again",
      [asked("a"), asked("a"), asked("b"), asked("b")],
      ledger,
      false,
    ],
    ["the run was charged another amount", [asked("a"), asked("b")], { ...ledger, chargedUsd: 0.31 }, false],
    ["the run has not ended", [asked("a"), asked("b")], { ...ledger, chargedUsd: null }, false],
  ] as const)("compareBooks() says whether the amounts agree if %s", ([, billed, books, isRight]) => {
    const compared = compareBooks(billed, books);
    expect(compared.isRight).toBe(isRight);
    expect(compared.words.join(" ")).toContain(
      isRight ? "No answer was paid for twice." : "The books differ",
    );
  });
});
