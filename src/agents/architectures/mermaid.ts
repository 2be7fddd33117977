import type { HostedAgent, Architecture } from "../../kernel/index.ts";

/**
 * Draws a Mermaid flowchart of an agent: its architecture, the architectures that it wraps, and all workers,
 * recursively. An agent that occurs several times is drawn once. Workers are missing for an agent that is not an
 * `Agent` of this package, or whose architecture declares none.
 */
export function drawAgent(agent: HostedAgent): string {
  const chart = new Chart();
  chart.agent(agent);
  return chart.text();
}

class Chart {
  readonly #nodes: string[] = [];
  readonly #arrows: string[] = [];
  readonly #nodeIds = new Map<HostedAgent, string>();

  agent(agent: HostedAgent): string {
    const known = this.#nodeIds.get(agent);
    if (known !== undefined) return known;
    const node = `a${this.#nodeIds.size + 1}`;
    this.#nodeIds.set(agent, node);
    const architecture = architectureOf(agent);
    const architectures =
      architecture === undefined ? [] : architectureChain(architecture).map(({ name }) => escaped(name));
    const label = architectures.length === 0 ? "" : `<br/><i>${architectures.join(" over ")}</i>`;
    this.#nodes.push(`  ${node}["${escaped(agent.id)}${label}"]`);
    for (const [role, worker] of Object.entries(architecture?.declaredWorkers() ?? {}))
      this.#arrows.push(`  ${node} -->|"${escaped(role)}"| ${this.agent(worker)}`);
    return node;
  }

  text(): string {
    return ["flowchart TD", ...this.#nodes, ...this.#arrows, ""].join("\n");
  }
}

/** Returns an architecture, its base, the base of its base, and so on. */
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

/** Escapes a name for a label: no markup, no quotes, no line breaks. */
function escaped(text: string): string {
  return text
    .replaceAll(/\s+/gu, " ")
    .replaceAll(/[^\p{L}\p{N} _.,:@/()-]/gu, (each) => `#${each.codePointAt(0)};`);
}
