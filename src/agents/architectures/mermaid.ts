import type { HostedAgent, Architecture } from "../../kernel/index.ts";

/**
 * A Mermaid flowchart of an agent: how it thinks, around what, and whom it sets to work, all the way down. An agent that comes up again is
 * drawn once. One that is no `Agent` of this package, or whose architecture declares nobody, has nobody below it.
 */
export function drawAgent(agent: HostedAgent): string {
  const chart = new Chart();
  chart.agent(agent);
  return chart.text();
}

class Chart {
  readonly #nodes: string[] = [];
  readonly #arrows: string[] = [];
  readonly #drawn = new Map<HostedAgent, string>();

  agent(agent: HostedAgent): string {
    const known = this.#drawn.get(agent);
    if (known !== undefined) return known;
    const node = `a${this.#drawn.size + 1}`;
    this.#drawn.set(agent, node);
    const architecture = architectureOf(agent);
    const ways =
      architecture === undefined ? [] : architectureChain(architecture).map(({ name }) => escaped(name));
    const how = ways.length === 0 ? "" : `<br/><i>${ways.join(" over ")}</i>`;
    this.#nodes.push(`  ${node}["${escaped(agent.id)}${how}"]`);
    for (const [role, worker] of Object.entries(architecture?.declaredWorkers() ?? {}))
      this.#arrows.push(`  ${node} -->|"${escaped(role)}"| ${this.agent(worker)}`);
    return node;
  }

  text(): string {
    return ["flowchart TD", ...this.#nodes, ...this.#arrows, ""].join("\n");
  }
}

/** An architecture, that around which it is wrapped, and so on. */
function architectureChain(architecture: Architecture): readonly Architecture[] {
  const chain: Architecture[] = [];
  let next: Architecture | undefined = architecture;
  while (next !== undefined && !chain.includes(next)) {
    chain.push(next);
    next = next.base;
  }
  return chain;
}

function architectureOf(agent: HostedAgent): Architecture | undefined {
  const architecture: unknown = Reflect.get(agent, "architecture");
  const declares: unknown =
    typeof architecture === "object" && architecture !== null
      ? Reflect.get(architecture, "declaredWorkers")
      : undefined;
  return typeof declares === "function" ? (architecture as Architecture) : undefined;
}

/** A name is text, whatever it is: no markup, no end of the label, no line of its own. */
function escaped(text: string): string {
  return text
    .replaceAll(/\s+/gu, " ")
    .replaceAll(/[^\p{L}\p{N} _.,:@/()-]/gu, (each) => `#${each.codePointAt(0)};`);
}
