/**
 * Reads on until something is made of an item; `undefined` when all were read. As `for await` with a `return` in it, by hand: text comes
 * in thousands of pieces, and a function that waits costs more than what it does with each.
 */
export function readUntil<Item, Result>(
  items: AsyncIterable<Item>,
  make: (item: Item) => Result | undefined,
): Promise<Result | undefined> {
  const iterator = items[Symbol.asyncIterator]();
  // Looked up once, as `for await` does: to V8, the generators of two agents' functions are of different kinds.
  // oxlint-disable-next-line typescript/unbound-method -- called by `call`
  const { next } = iterator;
  return new Promise((resolve, reject) => {
    const see = (read: IteratorResult<Item>): void => {
      try {
        if (read.done === true) {
          resolve(undefined);
          return;
        }
        const made = make(read.value);
        if (made === undefined) next.call(iterator).then(see, reject);
        else leave(iterator).then(() => resolve(made), reject);
      } catch (error) {
        // Why it leaves matters more than how that went.
        const fail = (): void => reject(error);
        leave(iterator).then(fail, fail);
      }
    };
    next.call(iterator).then(see, reject);
  });
}

async function leave(iterator: AsyncIterator<unknown>): Promise<void> {
  await iterator.return?.();
}
