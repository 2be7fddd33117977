/**
 * Reads on until something is made of an item; `undefined` when all were read. As `for await` with a `return` in it, by hand: text comes
 * in thousands of pieces, and a function that waits costs more than what it does with each.
 */
export function readUntil<Item, Result>(
  items: AsyncIterable<Item>,
  make: (item: Item) => Result | undefined,
): Promise<Result | undefined> {
  const iterator = items[Symbol.asyncIterator]();
  const leave = async (): Promise<void> => {
    await iterator.return?.();
  };
  return new Promise((resolve, reject) => {
    const see = (next: IteratorResult<Item>): void => {
      try {
        if (next.done === true) {
          resolve(undefined);
          return;
        }
        const made = make(next.value);
        if (made === undefined) read();
        else leave().then(() => resolve(made), reject);
      } catch (error) {
        // Why it leaves matters more than how that went.
        const fail = (): void => reject(error);
        leave().then(fail, fail);
      }
    };
    const read = (): void => {
      iterator.next().then(see, reject);
    };
    read();
  });
}
