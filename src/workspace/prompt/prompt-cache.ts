import { platformOf, type PromptQuery, type PromptSource } from "../../kernel/index.ts";
import type { Places } from "../places.ts";
import { promptFooter, promptPrefix, type PromptAgent, type PromptMaterial } from "./system-prompt.ts";

/** What prompts are built from, and where they are kept. */
export interface PromptCacheOptions {
  /** Reads the material. It is called once after each `clear`. */
  readonly load: () => Promise<PromptMaterial>;
  readonly places: Places;
  readonly now: () => number;
}

/** Number of prompts that are kept. The oldest one is dropped for a new one. */
const maxPrompts = 100;

/**
 * Builds the system prompts of a workspace and keeps their stable part by agent, platform and tool set. The profile is
 * fixed for a workspace. Invocations that build a prompt at the same time share the reading of the files.
 */
export class PromptCache {
  readonly #options: PromptCacheOptions;
  #material: Promise<PromptMaterial> | undefined;
  readonly #prefixes = new Map<string, string>();

  constructor(options: PromptCacheOptions) {
    this.#options = options;
  }

  /** Returns the prompt source of one agent. */
  source(agent: PromptAgent): PromptSource {
    return {
      build: (query) => this.#build(agent, query),
      reload: () => {
        this.clear();
        return Promise.resolve();
      },
    };
  }

  /** Forgets all prompts and the content of the files. The next prompt reads them again. */
  clear(): void {
    this.#material = undefined;
    this.#prefixes.clear();
  }

  async #build(agent: PromptAgent, query: PromptQuery): Promise<{ text: string; fromCache: boolean }> {
    // Channels of one platform share a prompt: a server with thousands of chats would otherwise drop all others.
    const platform = platformOf(query.channel);
    const key = JSON.stringify([agent.name, agent.instructions, platform, query.toolNames]);
    const known = this.#prefixes.get(key);
    const prefix = known ?? (await this.#prefix(agent, query, key));
    const { places, now } = this.#options;
    const footer = promptFooter({ places, now: now(), sessionId: query.sessionId });
    return { text: `${prefix}\n\n${footer}`, fromCache: known !== undefined };
  }

  async #prefix(agent: PromptAgent, query: PromptQuery, key: string): Promise<string> {
    const reading = (this.#material ??= this.#options.load());
    try {
      const prefix = promptPrefix(await reading, agent, query);
      // After a `clear` during the reading, the prefix may be out of date and is not kept.
      if (this.#material === reading) this.#keep(key, prefix);
      return prefix;
    } catch (error) {
      if (this.#material === reading) this.#material = undefined;
      throw error;
    }
  }

  #keep(key: string, prefix: string): void {
    if (this.#prefixes.size >= maxPrompts) {
      const [oldest = ""] = this.#prefixes.keys();
      this.#prefixes.delete(oldest);
    }
    this.#prefixes.set(key, prefix);
  }
}
