import '#http/planted';
import '../../../http/planted.ts';
import '../../../server.ts';
import '../../../../bench/planted.ts';
import '../../../../test/planted.ts';
