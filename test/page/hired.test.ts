import { expect, test } from "vitest";
import { axeIssuesHere } from "./axe-issues.ts";
import { always, hired, inside, outside, reject, view } from "./hired-agents.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { submitRun, waitsForPerson } from "./page-runs.ts";
import { PageServer } from "./page-server.ts";
import { sharedPage, shown } from "./page-tests.ts";

const server = new PageServer(() => [
  hired("coder", view),
  hired("pusher", { ...view, options: [always, reject] }),
]);
const { open } = sharedPage(server);

async function asking(agent: string): Promise<string> {
  const runId = await submitRun(server, agent, "Repair it.");
  await waitsForPerson(server, runId);
  return runId;
}

test("the page's card of a hired program's call marks paths outside its folder, colours the change, and explains its options", async () => {
  const runId = await asking("coder");
  const page = await open(`/runs/${runId}/conversation`);
  const card = page.getByRole("region", { name: "coder waits for you" });
  await card.getByText("The program of coder wants to call edit").waitFor();
  const places = card.getByRole("list", { name: "Paths" }).getByRole("listitem");
  expect(await places.allTextContents()).toEqual([`${outside}outside its folder`, inside]);
  const colourOf = (selector: string): Promise<string> =>
    page.evaluate<string>(`getComputedStyle(document.querySelector(".approval ${selector}")).color`);
  const red = await colourOf(".places .outside code");
  expect(red).toBe(await colourOf(".chip.bad"));
  expect(red).not.toBe(await colourOf(".places li:not(.outside) code"));
  expect(await card.locator(".diff .removed").allTextContents()).toEqual(["2−const old = 1;"]);
  expect(await card.locator(".diff .added").allTextContents()).toEqual(["2+const fresh = 2;"]);
  expect(await card.locator(".offered li").allTextContents()).toEqual([
    "Yes given if you allow it",
    "Yes, and do not ask again never given: Reeve remembers by itself",
    "No given if you deny it",
  ]);
  expect(await shown(card.getByText("its process ends and the question stays"))).toBe(true);
  expect(await axeIssuesHere(page)).toEqual([]);

  await card.getByRole("button", { name: "Allow once" }).click();
  await page.getByText(/^(?:Approved by you|You approved edit)/u).waitFor();
  const call = page.locator("details.tool");
  await call.getByText("const late = 2;").waitFor();
  expect(await call.locator("summary").textContent()).toMatch(/1 path outside.*\+1 −1 · as it reports/u);
  expect(await call.locator(".places .outside").textContent()).toContain(outside);
  expect(await (await server.runtime.find(runId))?.result()).toMatchObject({ output: "approved" });
});

test("a call whose hired program offers no permission for one call can be denied on the page and not allowed", async () => {
  const runId = await asking("pusher");
  const page = await open(`/runs/${runId}/conversation`);
  const card = page.getByRole("region", { name: "pusher waits for you" });
  await card.getByText("it cannot be allowed").waitFor();
  expect(await card.getByRole("button", { name: "Allow once" }).isDisabled()).toBe(true);
  await page.keyboard.press("a");
  await card.getByRole("button", { name: "Deny" }).click();
  await card.getByRole("button", { name: "Deny the call" }).click();
  await page.getByText(/^(?:Denied by you|You denied edit)/u).waitFor();
  expect(await (await server.runtime.find(runId))?.result()).toMatchObject({ output: "refused" });
});

test("the page's card and call of a hired program fit 390 px with 40 px targets", async () => {
  const runId = await asking("coder");
  const page = await open(`/runs/${runId}/conversation`);
  await page.setViewportSize({ width: 390, height: 844 });
  const card = page.getByRole("region", { name: "coder waits for you" });
  await card.getByText("outside its folder").first().waitFor();
  expect(await narrowIssues(page)).toEqual([]);
});
