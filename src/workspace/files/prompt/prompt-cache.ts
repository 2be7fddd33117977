import { platformOf, type PromptQuery, type PromptSource } from "../../../kernel/index.ts";
import type { Places } from "../places.ts";
import { promptFooter, promptPrefix, type PromptAgent, type PromptMaterial } from "./system-prompt.ts";

/** The material from which prompts are built, and how to read it again. */
export interface PromptCacheOptions {
  /** The material that was read before. It is used until the first `clear`. */
  readonly initial: PromptMaterial;
  /** Reads the material. It is called once after each `clear`. */
  readonly load: () => Promise<PromptMaterial>;
  readonly places: Places;
  /** Folder for scratch files of the profile. */
  readonly temp?: string | undefined;
  readonly now: () => number;
}

/** Maximum number of cached prompts. The oldest is dropped for a new one. */
const maxPrompts = 100;

/**
 * Builds the system prompts of a workspace and caches their stable part by agent, platform and tool set. The
 * profile is fixed for a workspace. If several invocations build a prompt at the same time, the files are read only
 * once.
 */
export class PromptCache {
  readonly #options: PromptCacheOptions;
  #material: Promise<PromptMaterial> | undefined;
  readonly #prefixes = new Map<string, string>();

  constructor(options: PromptCacheOptions) {
    this.#options = options;
    this.#material = Promise.resolve(options.initial);
    promptCaches.add(memoryFolder(options.places), this);
  }

  /** Returns the prompt source of one agent. */
  source(agent: PromptAgent): PromptSource {
    return {
      acceptsInstructions: true,
      build: (query) =>
        this.#build(
          query.instructions === undefined ? agent : { ...agent, instructions: query.instructions },
          query,
        ),
      reload: () => {
        this.clear();
        return Promise.resolve();
      },
    };
  }

  /** Removes all prompts and file contents from the cache. The next prompt reads the files again. */
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
    const { places, temp, now } = this.#options;
    const footer = promptFooter({ places, temp, now: now(), sessionId: query.sessionId });
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

/** Returns the folder with `MEMORY.md` and `USER.md`. */
export function memoryFolder({ home, profile }: Places): string {
  return profile?.folder ?? home;
}

/**
 * The prompt caches of this process, by the folder whose memory their prompts contain. There are several for a
 * folder: agents that were made before a reload, and other workspaces with the same profile, have their own caches.
 * A cache that no agent uses any more is garbage-collected.
 */
class PromptCaches {
  readonly #byFolder = new Map<string, readonly WeakRef<PromptCache>[]>();

  add(folder: string, cache: PromptCache): void {
    const live = this.#live(folder).map((each) => new WeakRef(each));
    this.#byFolder.set(folder, [...live, new WeakRef(cache)]);
  }

  /** Clears all caches whose prompts contain the memory of a folder. */
  clear(folder: string): void {
    for (const cache of this.#live(folder)) cache.clear();
  }

  #live(folder: string): readonly PromptCache[] {
    return (this.#byFolder.get(folder) ?? []).flatMap((each) => each.deref() ?? []);
  }
}

export const promptCaches = new PromptCaches();
