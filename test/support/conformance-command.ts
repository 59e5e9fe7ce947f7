/* What the conformance tests take for a client: `COMMAND DRIVER URL` has the test at DRIVER use the server at URL, and ends when it has. */
const [driver = '', url = ''] = process.argv.slice(2);
const { MCP_CONFORMANCE_SCENARIO: scenario } = process.env;
const answer = await fetch(driver, { method: 'POST', body: JSON.stringify({ scenario, url }) });
console.log(await answer.text());
process.exitCode = answer.ok ? 0 : 1;
