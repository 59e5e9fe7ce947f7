import '#http/planted';
import '../../../http/planted.ts';
import '../../../main.ts';
import '../../../../bench/planted.ts';
import '../../../../test/planted.ts';
