// A check is a line of JSON with its name, whether it passed, and what it saw, which is to be the same with all libraries.
export async function check(name, body) {
  let line;
  try {
    line = { check: name, ok: true, value: await body() };
  } catch (error) {
    line = { check: name, ok: false, note: String((error && error.stack) || error).slice(0, 500) };
  }
  console.log(JSON.stringify(line));
}
