import type { Page } from "playwright-core";

/** The smallest side of a target, in pixels. */
const smallest = 40;

/** Lists what makes the view hard to use on a narrow screen: a page that scrolls sideways, and targets below 40 px. */
export async function narrowIssues(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(script);
}

// A target may be larger than its mark: its label, or a box that the mark draws around itself.
const script = `(() => {
  const issues = [];
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) issues.push("scrolls sideways: " + scrollWidth + " of " + innerWidth);
  for (const element of document.querySelectorAll("a, button, summary, select, textarea, input")) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    let { width, height } = (element.closest("label, .find") ?? element).getBoundingClientRect();
    const around = getComputedStyle(element, "::after");
    if (around.position === "absolute" && around.content !== "none") {
      width = Math.max(width, parseFloat(around.width));
      height = Math.max(height, parseFloat(around.height));
    }
    if (width < ${smallest} || height < ${smallest})
      issues.push(element.outerHTML.slice(0, 120) + " is " + Math.round(width) + " x " + Math.round(height));
  }
  return issues;
})()`;
