import axe from "axe-core";
import type { Page } from "playwright-core";
import { isFull } from "../effort.ts";
import { pushPath } from "./page-server.ts";

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/**
 * Lists the serious issues that axe finds in the views at `paths`. `npm test` looks at the views in the light and in the dark
 * theme in turn, and `npm run test:full` at the contrast of each of them in the other theme, too.
 */
export async function axeIssues(page: Page, paths: readonly string[]): Promise<readonly string[]> {
  // Through the debugger, because the page's policy refuses scripts from elsewhere.
  await page.evaluate(axe.source);
  const found: string[] = [];
  for (const path of paths) {
    await pushPath(page, path);
    // A session on a narrow screen hides its heading.
    await page.locator("main h1").first().waitFor({ state: "attached" });
    for (const issue of await issuesOf(page, { resultTypes: ["violations"] }))
      found.push(`${path}: ${issue}`);
    await page.keyboard.press("t");
    if (!isFull) continue;
    const contrast = { runOnly: ["color-contrast"], resultTypes: ["violations"] };
    for (const issue of await issuesOf(page, contrast)) found.push(`${path} in the other theme: ${issue}`);
  }
  return found;
}

/** Lists the serious issues that axe finds in a page that is no view, with the contrast in both themes. */
export async function axeIssuesHere(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const found = await issuesOf(page, { resultTypes: ["violations"] });
  await page.emulateMedia({ colorScheme: "dark" });
  const contrast = { runOnly: ["color-contrast"], resultTypes: ["violations"] };
  return [...found, ...(await issuesOf(page, contrast))];
}

async function issuesOf(page: Page, options: object): Promise<readonly string[]> {
  const { violations } = await page.evaluate<AxeResult>(`axe.run(${JSON.stringify(options)})`);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}
