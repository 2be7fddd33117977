import { expect, test } from "vitest";
import { Agent, tool } from "../../src/entries/index.ts";
import { experiment, type Experiment } from "../../src/entries/experiments.ts";
import { isFull } from "../effort.ts";
import { answering, askedIn } from "../experiments/answering-model.ts";
import { axeIssues } from "./axe-issues.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { submitRun } from "./page-runs.ts";
import { pageTests, shown } from "./page-tests.ts";

const { server, open } = pageTests();

const atlas = tool({
  name: "atlas",
  description: "Looks up.",
  inputSchema: {} as const,
  execute: () => "A blank page.",
});

/** An experiment whose agent knows some capitals, and calls a tool for other ones. */
function capitals(name: string, known: readonly string[]): Experiment {
  const clerk = (city: string): Agent =>
    new Agent({
      name: `clerk-${name}`,
      model: answering((request) => {
        const country = askedIn(request).replace("Capital of ", "");
        if (known.includes(country)) return `${city} of ${country}`;
        if (request.messages.at(-1)?.role === "tool") return "I do not know.";
        return { toolCalls: [{ name: "atlas", input: {} }] };
      }),
      tools: [atlas],
    });
  return experiment({
    name,
    variants: { base: clerk("The capital"), brief: clerk("It") },
    cases: ["France", "Spain", "Peru", "Chad"].map((country) => ({
      id: country.toLowerCase(),
      input: `Capital of ${country}`,
      expected: `A city of ${country}`,
      tags: country === "Chad" ? [] : ["large"],
    })),
    scorers: [
      function knows({ output }) {
        const isKnown = JSON.stringify(output).includes(" of ");
        const metadata = { grades: isKnown ? [5, 4] : [1, 2] };
        return {
          score: isKnown,
          reason: isKnown ? "It names the capital." : "It names no capital.",
          metadata,
        };
      },
    ],
    gates: { knows: { mean: 0.9 } },
  });
}

/** Two runs of an experiment. The second run scores lower and lacks one case. Returns the id of the second run. */
async function twoRuns(name: string): Promise<string> {
  // The model of the second run answers differently, as that of a changed agent does.
  const known = ["France", "Spain", "Peru", "Chad"];
  const given = capitals(name, known);
  await given.run({ runtime: server.runtime });
  known.length = 1;
  const { runId } = await given.run({ runtime: server.runtime, tags: ["large"] });
  return runId;
}

test("the page lists experiments with gates, reasons and the trend, and shows first what got worse in one experiment", async () => {
  const runId = await twoRuns("capitals");
  const page = await open("/experiments");
  const row = page.getByRole("row").filter({ hasText: "Failed" }).filter({ hasText: "capitals" });
  await row.getByText("knows: the mean is 0.333").waitFor();
  await row.getByRole("img", { name: "Lowest mean of the last 2 runs: 1, 0.33" }).waitFor();
  expect(await shown(page.getByRole("row").filter({ hasText: "Passed" }).first())).toBe(true);
  await row.getByRole("link", { name: "capitals" }).click();
  await page.getByRole("heading", { name: "capitals", level: 1 }).waitFor();
  await page.getByText("Too few cases to rely on").waitFor();
  const cases = page.getByRole("region", { name: "Cases, worst first" }).getByRole("row");
  await cases.nth(1).getByText("peru").waitFor();
  await cases.nth(1).getByText("was 1").first().waitFor();
  expect(await cases.nth(3).textContent()).toContain("france");
  await cases.nth(1).getByRole("link", { name: "peru" }).click();
  const detail = page.getByRole("region", { name: "peru" });
  await detail.getByText("Asked Capital of Peru").waitFor();
  await detail.getByText("It names no capital.").first().waitFor();
  await detail.getByText("Against the other run").first().waitFor();
  await detail.getByText("Other tools atlas; the other run: no tool").first().waitFor();
  await cases.nth(4).getByText("only in the other run").waitFor();
  expect(await detail.getByRole("link", { name: "Conversation" }).count()).toBe(2);
  expect(page.url()).toContain(`${runId}?case=peru`);
  await page.getByLabel("Compared with").selectOption({ label: "nothing" });
  await detail.getByText("The same answer as base").waitFor();
  await detail.getByText("Expected A city of Peru").waitFor();
  await detail.getByText("votes 1, 2").first().waitFor();
  // A select keeps its keys while it has the focus.
  await page.getByRole("heading", { name: "peru" }).click();
  await page.keyboard.press("k");
  await page.keyboard.press("j");
  await page.getByRole("region", { name: "spain" }).waitFor();
  const trials = page.getByRole("region", { name: "spain" }).getByRole("article");
  await trials.nth(1).waitFor();
  await page.keyboard.press("]");
  await page.keyboard.press("]");
  await trials.nth(1).and(page.locator('[aria-current="true"]')).waitFor();
  await page.keyboard.press("[");
  await trials.nth(0).and(page.locator('[aria-current="true"]')).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/runs\/run_[\w-]+\/conversation/u);
});

test("the thumbs on the page judge an ended run, the list shows the score, and a filter finds the run", async () => {
  const runId = await submitRun(server, "counted", "Count to praise");
  await (await server.runtime.find(runId))?.result();
  const page = await open(`/runs/${runId}`);
  await page.getByRole("button", { name: "Bad run" }).click();
  await page.getByRole("button", { name: "Bad run", pressed: true }).waitFor();
  await page.goto(`${server.url}/runs?score=${encodeURIComponent("thumbs<0.5")}`);
  const row = page.getByRole("row").filter({ hasText: "Count to praise" });
  await row.getByTitle("thumbs by person").waitFor();
  expect(await shown(page.getByText("thumbs<0.5"))).toBe(true);
});

test.each(isFull ? [390, 1280] : [390])(
  "the page's views of experiments fit %i px and have no serious issue in axe, in both themes",
  async (width) => {
    const name = `narrow-${width}`;
    const runId = await twoRuns(name);
    const one = `/experiments/${runId}?case=peru`;
    const page = await open(one, { viewport: { width, height: 844 } });
    await page.getByText("It names no capital.").first().waitFor();
    expect(width < 720 ? await narrowIssues(page) : []).toEqual([]);
    expect(await axeIssues(page, [one])).toEqual([]);
    await page.goto(`${server.url}/experiments`);
    await page.getByText(name).first().waitFor();
    expect(width < 720 ? await narrowIssues(page) : []).toEqual([]);
    expect(await axeIssues(page, width < 720 ? ["/experiments"] : [])).toEqual([]);
  },
);
