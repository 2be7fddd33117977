import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { CancellationError, CancellationToken, type CancelListener } from "../../../src/kernel/index.ts";

/** Creates a tree of tokens. `parents[n]` is the index of the parent of node n + 1; node 0 is the root. */
function family(parents: readonly number[]): {
  readonly tokens: readonly CancellationToken[];
  readonly subtreeOf: (top: number) => readonly number[];
} {
  const tokens: [CancellationToken, ...CancellationToken[]] = [new CancellationToken()];
  for (const parent of parents) tokens.push((tokens[parent] ?? tokens[0]).child());
  return {
    tokens,
    subtreeOf(top) {
      const inside = new Set([top]);
      for (const [index, parent] of parents.entries()) if (inside.has(parent)) inside.add(index + 1);
      return [...inside];
    },
  };
}

const shape = fc
  .array(fc.nat(), { maxLength: 40 })
  .map((picks) => picks.map((pick, index) => pick % (index + 1)));

function chain(length: number): { readonly root: CancellationToken; readonly leaf: CancellationToken } {
  const root = new CancellationToken();
  let leaf = root;
  for (let depth = 0; depth < length; depth++) leaf = leaf.child();
  return { root, leaf };
}

describe("CancellationToken", () => {
  test("check() of a cancellation token passes until the token is cancelled", () => {
    const token = new CancellationToken();
    expect(() => token.check()).not.toThrow();
    expect(token.cancelled).toBe(false);
    expect(token.error).toBeUndefined();
  });

  test("check() of a cancellation token always throws the reason after the token was cancelled", () => {
    const token = new CancellationToken();
    token.cancel("user stopped");
    expect(token.cancelled).toBe(true);
    expect(() => token.check()).toThrow(CancellationError);
    expect(() => token.check()).toThrow(
      expect.objectContaining({ code: "cancelled", reason: "user stopped", status: "cancelled" }),
    );
  });

  test("a cancellation token that is cancelled without a reason has a default reason and status", () => {
    const token = new CancellationToken();
    token.cancel();
    expect(token.error).toMatchObject({ reason: "cancelled", status: "cancelled" });
  });

  test("C1: a cancellation token that is cancelled several times keeps the first reason and status", () => {
    const token = new CancellationToken();
    token.cancel("out of time", "deadline_exceeded");
    const first = token.error;
    token.cancel("user stopped");
    expect(token.error).toBe(first);
    expect(token.error).toMatchObject({ reason: "out of time", status: "deadline_exceeded" });
  });
});

describe("C1: a child cancellation token", () => {
  test("C1: a child token is cancelled with its parent token for the same reason", () => {
    const parent = new CancellationToken();
    const grandchild = parent.child().child();
    parent.cancel("user stopped");
    expect(grandchild.error).toBe(parent.error);
    expect(() => grandchild.check()).toThrow(expect.objectContaining({ reason: "user stopped" }));
  });

  test("C1: cancelling a child token cancels neither its parent nor its siblings", () => {
    const parent = new CancellationToken();
    const [one, other] = [parent.child(), parent.child()];
    one.cancel("this branch only");
    expect([parent.cancelled, one.cancelled, other.cancelled]).toEqual([false, true, false]);
  });

  test("C1: a child token keeps its reason when its parent is cancelled later", () => {
    const parent = new CancellationToken();
    const child = parent.child();
    child.cancel("mine");
    parent.cancel("theirs");
    expect(child.error?.reason).toBe("mine");
    expect(parent.error?.reason).toBe("theirs");
  });

  test("C1: a child token keeps its parent's reason when it is cancelled later", () => {
    const parent = new CancellationToken();
    const child = parent.child();
    parent.cancel("theirs");
    child.cancel("mine");
    expect(child.error?.reason).toBe("theirs");
  });

  test("C1: a child of a cancelled token is cancelled from the start", () => {
    const parent = new CancellationToken();
    parent.cancel("user stopped");
    expect(parent.child().error).toBe(parent.error);
  });
});

describe("C1: random trees of cancellation tokens", () => {
  test("C1: cancelling a token in a random tree cancels exactly the tokens below it", () => {
    fc.assert(
      fc.property(shape, fc.nat(), (parents, pick) => {
        const { tokens, subtreeOf } = family(parents);
        const top = pick % tokens.length;
        tokens[top]?.cancel("stop");
        const inside = new Set(subtreeOf(top));
        expect(tokens.map((token) => token.cancelled)).toEqual(
          tokens.map((_token, index) => inside.has(index)),
        );
        for (const index of inside) expect(tokens[index]?.error).toBe(tokens[top]?.error);
      }),
    );
  });

  test("C1: each token of a random tree has the first reason that reached it, whether or not it was checked in between", () => {
    const cancels = fc.array(fc.tuple(fc.nat(), fc.boolean()), { maxLength: 10 });
    fc.assert(
      fc.property(shape, cancels, (parents, orders) => {
        const { tokens, subtreeOf } = family(parents);
        const expected = tokens.map((): string | undefined => undefined);
        for (const [number, [pick, look]] of orders.entries()) {
          const top = pick % tokens.length;
          const reason = `order ${number}`;
          tokens[top]?.cancel(reason);
          if (expected[top] === undefined) for (const index of subtreeOf(top)) expected[index] ??= reason;
          const seen = tokens.map((token, index) => (look ? token.error?.reason : expected[index]));
          expect(seen).toEqual(expected);
        }
        expect(tokens.map((token) => token.error?.reason)).toEqual(expected);
      }),
    );
  });

  test("C1: cancelling a token calls each listener below it once with the same error, and no other listener", () => {
    const watchers = fc.array(fc.nat(), { maxLength: 60 });
    fc.assert(
      fc.property(
        shape,
        watchers,
        fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
        (parents, watched, picks) => {
          const { tokens, subtreeOf } = family(parents);
          const listeners = watched.map((pick) => {
            const place = pick % tokens.length;
            const heard: (CancellationError | undefined)[] = [];
            tokens[place]?.onCancel((error) => heard.push(error));
            return { place, heard };
          });
          const reached = new Set<number>();
          for (const pick of picks) {
            const top = pick % tokens.length;
            tokens[top]?.cancel(`at ${top}`);
            for (const index of subtreeOf(top)) reached.add(index);
          }
          for (const { place, heard } of listeners) {
            expect(heard).toEqual(reached.has(place) ? [tokens[place]?.error] : []);
          }
        },
      ),
    );
  });
});

describe("a cancellation listener", () => {
  test("a cancellation listener is called once, also when the token is cancelled again", () => {
    const token = new CancellationToken();
    const listener = vi.fn<CancelListener>();
    token.onCancel(listener);
    token.cancel("one");
    token.cancel("two");
    expect(listener.mock.calls).toEqual([[token.error]]);
  });

  test("a cancellation listener that is added after the cancellation is called at once", () => {
    const token = new CancellationToken();
    token.cancel("user stopped");
    const listener = vi.fn<CancelListener>();
    token.onCancel(listener);
    expect(listener.mock.calls).toEqual([[token.error]]);
  });

  test("a removed cancellation listener is not called, and removing it twice has no effect", () => {
    const token = new CancellationToken().child();
    const listener = vi.fn<CancelListener>();
    const leave = token.onCancel(listener);
    leave();
    leave();
    token.cancel();
    expect(listener).not.toHaveBeenCalled();
  });

  test("a cancellation listener stays registered when another one is removed", () => {
    const parent = new CancellationToken();
    const child = parent.child();
    const [one, other] = [vi.fn<CancelListener>(), vi.fn<CancelListener>()];
    const leave = child.onCancel(one);
    child.onCancel(other);
    leave();
    leave();
    parent.cancel();
    expect(one).not.toHaveBeenCalled();
    expect(other).toHaveBeenCalledOnce();
  });

  test("the same function added twice as a cancellation listener counts as two listeners", () => {
    const token = new CancellationToken();
    const listener = vi.fn<CancelListener>();
    const leave = token.onCancel(listener);
    token.onCancel(listener);
    leave();
    token.cancel();
    expect(listener).toHaveBeenCalledOnce();
  });

  test("a cancellation listener that throws does not keep other listeners of its token and of child tokens from being called", () => {
    const token = new CancellationToken();
    const [before, below, after] = [
      vi.fn<CancelListener>(),
      vi.fn<CancelListener>(),
      vi.fn<CancelListener>(),
    ];
    token.onCancel(before);
    token.onCancel(() => {
      throw new TypeError("broken listener");
    });
    token.child().onCancel(below);
    token.onCancel(after);
    expect(() => token.cancel("user stopped")).toThrow("broken listener");
    for (const listener of [before, below, after]) {
      expect(listener.mock.calls).toEqual([[expect.objectContaining({ reason: "user stopped" })]]);
    }
    expect(token.error?.reason).toBe("user stopped");
  });

  test("a throwing listener of a child token does not keep listeners of parent and sibling tokens from being called", () => {
    const root = new CancellationToken();
    const [beside, above] = [vi.fn<CancelListener>(), vi.fn<CancelListener>()];
    root
      .child()
      .child()
      .onCancel(() => {
        throw new TypeError("broken listener");
      });
    root.child().onCancel(beside);
    root.onCancel(above);
    expect(() => root.cancel()).toThrow("broken listener");
    expect(beside).toHaveBeenCalledOnce();
    expect(above).toHaveBeenCalledOnce();
  });

  test("all tokens of a tree are already cancelled when a cancellation listener is called", () => {
    const root = new CancellationToken();
    const [first, second] = [root.child(), root.child()];
    const seen: boolean[] = [];
    first.onCancel(() => seen.push(root.cancelled, first.cancelled, second.cancelled));
    second.onCancel(() => seen.push(first.cancelled));
    root.cancel();
    expect(seen).toEqual([true, true, true, true]);
  });

  test("a cancellation listener may cancel tokens and add and remove listeners while it is called", () => {
    const root = new CancellationToken();
    const child = root.child();
    const late = vi.fn<CancelListener>();
    const leave = child.onCancel(() => {});
    root.onCancel(() => {
      root.cancel("again");
      child.onCancel(late);
      leave();
    });
    root.cancel("first");
    expect(late.mock.calls).toEqual([[root.error]]);
    expect(root.error?.reason).toBe("first");
  });

  test("a cancellation listener that another listener removes before its turn is not called", () => {
    const token = new CancellationToken();
    const second = vi.fn<CancelListener>();
    const leaves: (() => void)[] = [];
    token.onCancel(() => leaves.forEach((leave) => leave()));
    leaves.push(token.onCancel(second));
    token.cancel();
    expect(second).not.toHaveBeenCalled();
  });
});

describe("waiting for a cancellation", () => {
  test("a wait on a cancellation token rejects with the error once the token is cancelled", async () => {
    const token = new CancellationToken();
    const waited = token.wait();
    token.cancel("user stopped");
    await expect(waited).resolves.toBe(token.error);
  });

  test("a wait on a cancelled token rejects at once", async () => {
    const token = new CancellationToken();
    token.cancel("user stopped");
    await expect(token.wait()).resolves.toBe(token.error);
  });

  test("a wait on a cancellation token rejects when a distant ancestor is cancelled", async () => {
    const { root, leaf } = chain(100);
    const waited = Promise.all([leaf.wait(), leaf.wait(), root.child().wait()]);
    root.cancel("user stopped");
    await expect(waited).resolves.toEqual([root.error, root.error, root.error]);
  });

  test("a disposed wait on a cancellation token does not reject, and a new wait does", async () => {
    const token = new CancellationToken();
    const ended = vi.fn<CancelListener>();
    void token.wait().then(ended);
    token.dispose();
    const again = token.wait();
    token.cancel("user stopped");
    await expect(again).resolves.toBe(token.error);
    expect(ended).not.toHaveBeenCalled();
  });

  test("a wait on a cancelled token that has ended can be disposed, and a new wait rejects too", async () => {
    const token = new CancellationToken();
    const waited = token.wait();
    token.cancel("user stopped");
    token.dispose();
    token.dispose();
    await expect(waited).resolves.toBe(token.error);
    await expect(token.wait()).resolves.toBe(token.error);
  });

  test("disposing a wait on a cancellation token does not affect other listeners", () => {
    const parent = new CancellationToken();
    const token = parent.child();
    const listener = vi.fn<CancelListener>();
    token.onCancel(listener);
    void token.wait();
    token.dispose();
    parent.cancel();
    expect(listener).toHaveBeenCalledOnce();
  });
});

describe("a chain of 100,000 cancellation tokens", () => {
  test("check() on a chain of 100,000 tokens does not overflow the stack", () => {
    const { root, leaf } = chain(100_000);
    leaf.check();
    root.cancel("user stopped");
    expect(leaf.error).toBe(root.error);
    expect(() => leaf.check()).toThrow(CancellationError);
  });

  test("cancelling a chain of 100,000 tokens calls the last token's listener without a stack overflow", () => {
    const { root, leaf } = chain(100_000);
    const listener = vi.fn<CancelListener>();
    leaf.onCancel(listener);
    root.cancel("user stopped");
    expect(listener.mock.calls).toEqual([[root.error]]);
  });
});

const megabyte = 2 ** 20;

describe("100,000 cancellation tokens under one parent", () => {
  test.each<[string, (child: CancellationToken) => void]>([
    ["created and dropped", () => {}],
    ["checked and dropped", (child) => child.check()],
    ["listened to and unsubscribed from", (child) => child.onCancel(() => {})()],
    ["listened to through a child and unsubscribed from", (child) => child.child().onCancel(() => {})()],
    [
      "waited on and disposed",
      (child) => {
        void child.wait();
        child.dispose();
      },
    ],
  ])("cancellation tokens that are %s leave no memory in their parent", (_name, use) => {
    const parent = new CancellationToken();
    for (let count = 0; count < 1000; count++) use(parent.child());
    const before = heapUsed();
    for (let count = 0; count < 100_000; count++) use(parent.child());
    expect(heapUsed() - before).toBeLessThan(4 * megabyte);
    expect(parent.cancelled).toBe(false);
  });
});

test("cancellation tokens that were waited on and cancelled leave no memory in their parent", () => {
  const parent = new CancellationToken();
  const before = heapUsed();
  for (let count = 0; count < 20_000; count++) {
    const child = parent.child();
    void child.wait();
    child.cancel();
  }
  expect(heapUsed() - before).toBeLessThan(2 * megabyte);
});

function heapUsed(): number {
  if (globalThis.gc === undefined) throw new Error("this test needs --expose-gc");
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
